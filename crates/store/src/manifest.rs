//! What recovery begins with: the format version, the watermark of the last checkpoint, and the counts at it.

use crate::planted::{self, Bug};
use crate::{KeyspaceId, KeyspaceStatistics, Lsn, Result, StorageError};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, Writer};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Raised whenever a program of another version could misread what this one writes.
pub(crate) const FORMAT_VERSION: u32 = 3;

const FILE_NAME: &str = "manifest.bson";

/// The durable description of a data directory.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Manifest {
    pub watermark: Lsn,
    /// When the last record below the watermark was written, or a later one; milliseconds since 1970.
    pub time_ms: u64,
    /// Where notes begin that go on to the end; `None` where they are not taken.
    pub noted_from: Option<Lsn>,
    pub keyspaces: Vec<(KeyspaceId, KeyspaceStatistics)>,
    /// Each engine's name and note, the store's own first.
    pub engines: Vec<(String, DocumentBuf)>,
    /// Keyspaces that are not in the store's own engine, and whose they are.
    pub routes: Vec<(KeyspaceId, String)>,
}

impl Manifest {
    /// The manifest's file.
    pub fn path(directory: &Path) -> PathBuf {
        directory.join(FILE_NAME)
    }

    /// Reads the manifest; `None` where the directory is new.
    pub fn read(directory: &Path) -> Result<Option<Self>> {
        let path = Self::path(directory);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StorageError::io(&path, error)),
        };
        let corrupt =
            |found: &str| StorageError::Corrupt { file: path.clone(), offset_bytes: 0, found: found.to_owned() };
        let (checksum, content) = bytes.split_first_chunk::<4>().ok_or_else(|| corrupt("shorter than its checksum"))?;
        let document = DocumentRef::parse(content).map_err(|error| corrupt(&error.to_string()))?;
        if u32::from_le_bytes(*checksum) != crc32c::crc32c(content) {
            return Err(corrupt("fails its checksum"));
        }
        let found = number(document, "formatVersion").and_then(|number| u32::try_from(number).ok());
        let found = found.ok_or_else(|| corrupt("has no format version"))?;
        if found != FORMAT_VERSION {
            return Err(StorageError::OtherFormat { path, found, supported: FORMAT_VERSION });
        }
        Ok(Some(Self {
            watermark: Lsn(number(document, "watermark").ok_or_else(|| corrupt("has no watermark"))?),
            time_ms: number(document, "timeMs").unwrap_or(0),
            noted_from: number(document, "notedFrom").map(Lsn),
            keyspaces: read_list(document, "keyspaces", read_keyspace)
                .ok_or_else(|| corrupt("malformed 'keyspaces'"))?,
            engines: read_list(document, "engines", read_engine).ok_or_else(|| corrupt("malformed 'engines'"))?,
            routes: read_list(document, "routes", read_route).ok_or_else(|| corrupt("malformed 'routes'"))?,
        }))
    }

    /// Replaces the manifest atomically and durably.
    pub fn write(&self, directory: &Path) -> Result<()> {
        let path = Self::path(directory);
        let temporary = directory.join("manifest.tmp");
        let io = |error| StorageError::io(&temporary, error);
        let content = self.encode();
        let mut file = File::create(&temporary).map_err(io)?;
        file.write_all(&crc32c::crc32c(&content).to_le_bytes()).map_err(io)?;
        file.write_all(&content).map_err(io)?;
        file.sync_all().map_err(io)?;
        std::fs::rename(&temporary, &path).map_err(io)?;
        if planted::active(Bug::NoDirectorySync) {
            return Ok(());
        }
        File::open(directory).and_then(|directory| directory.sync_all()).map_err(io)
    }

    fn encode(&self) -> Vec<u8> {
        let mut content = Vec::new();
        let mut writer = Writer::new(&mut content);
        writer
            .append("formatVersion", i64::from(FORMAT_VERSION))
            .append("watermark", self.watermark.0 as i64)
            .append("timeMs", self.time_ms as i64);
        if let Some(noted_from) = self.noted_from {
            writer.append("notedFrom", noted_from.0 as i64);
        }
        writer.begin_array("engines");
        for (index, (name, note)) in self.engines.iter().enumerate() {
            writer.push(index, &DocumentBuf::new().with("name", name.as_str()).with("note", note));
        }
        writer.end().begin_array("keyspaces");
        for (index, (keyspace, statistics)) in self.keyspaces.iter().enumerate() {
            let document = DocumentBuf::new()
                .with("id", i64::from(keyspace.0))
                .with("entries", statistics.entries as i64)
                .with("bytes", statistics.bytes as i64);
            writer.push(index, &document);
        }
        writer.end().begin_array("routes");
        for (index, (keyspace, engine)) in self.routes.iter().enumerate() {
            let document = DocumentBuf::new().with("id", i64::from(keyspace.0)).with("engine", engine.as_str());
            writer.push(index, &document);
        }
        writer.end().end();
        content
    }
}

/// The elements of a list of documents; `None` where one is malformed.
fn read_list<T>(document: DocumentRef<'_>, name: &str, read: impl Fn(DocumentRef<'_>) -> Option<T>) -> Option<Vec<T>> {
    document.get(name)?.as_array()?.iter().map(|value| read(value.as_document()?)).collect()
}

fn number(document: DocumentRef<'_>, name: &str) -> Option<u64> {
    match document.get(name) {
        Some(ValueRef::Int64(number)) => u64::try_from(number).ok(),
        _ => None,
    }
}

fn keyspace_id(document: DocumentRef<'_>) -> Option<KeyspaceId> {
    u32::try_from(number(document, "id")?).ok().map(KeyspaceId)
}

fn read_keyspace(document: DocumentRef<'_>) -> Option<(KeyspaceId, KeyspaceStatistics)> {
    let statistics = KeyspaceStatistics { entries: number(document, "entries")?, bytes: number(document, "bytes")? };
    Some((keyspace_id(document)?, statistics))
}

fn read_engine(document: DocumentRef<'_>) -> Option<(String, DocumentBuf)> {
    Some((document.get("name")?.as_str()?.to_owned(), document.get("note")?.as_document()?.to_owned()))
}

fn read_route(document: DocumentRef<'_>) -> Option<(KeyspaceId, String)> {
    Some((keyspace_id(document)?, document.get("engine")?.as_str()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        Manifest {
            watermark: Lsn(777),
            time_ms: 5,
            noted_from: Some(Lsn(700)),
            keyspaces: vec![(KeyspaceId(4), KeyspaceStatistics { entries: 2, bytes: 30 })],
            engines: vec![("lsm".into(), DocumentBuf::new().with("extents", 3))],
            routes: vec![(KeyspaceId(5), "memory".into())],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let directory = tempfile::tempdir().expect("temporary directory");
        assert!(Manifest::read(directory.path()).expect("readable").is_none());
        manifest().write(directory.path()).expect("written");
        let read = Manifest::read(directory.path()).expect("readable").expect("present");
        assert_eq!(read, manifest());
    }

    #[test]
    fn a_flipped_byte_and_another_format_are_named() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join(FILE_NAME);
        manifest().write(directory.path()).expect("written");
        let mut bytes = std::fs::read(&path).expect("readable");
        let last = bytes.len() - 10;
        bytes[last] ^= 1;
        std::fs::write(&path, &bytes).expect("written");
        assert!(matches!(Manifest::read(directory.path()), Err(StorageError::Corrupt { .. })));
        let newer = DocumentBuf::new().with("formatVersion", 99_i64).into_bytes();
        let mut bytes = crc32c::crc32c(&newer).to_le_bytes().to_vec();
        bytes.extend(newer);
        std::fs::write(&path, &bytes).expect("written");
        assert!(matches!(
            Manifest::read(directory.path()),
            Err(StorageError::OtherFormat { found: 99, supported: FORMAT_VERSION, .. })
        ));
    }
}
