//! What recovery begins with: the format version, the watermark of the last checkpoint, and the counts at it.

use crate::{KeyspaceId, KeyspaceStatistics, Lsn, Result, StorageError};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, Writer};
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// Raised whenever an older program could misread what a newer one wrote.
pub(crate) const FORMAT_VERSION: u32 = 1;

const FILE_NAME: &str = "manifest.bson";

/// The durable description of a data directory.
#[derive(Debug, Default)]
pub(crate) struct Manifest {
    pub engine: String,
    pub watermark: Lsn,
    pub keyspaces: Vec<(KeyspaceId, KeyspaceStatistics)>,
}

impl Manifest {
    /// Reads the manifest; `None` where the directory is new.
    pub fn read(directory: &Path) -> Result<Option<Self>> {
        let path = directory.join(FILE_NAME);
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
        let number = |name: &str| match document.get(name) {
            Some(ValueRef::Int64(number)) => u64::try_from(number).ok(),
            _ => None,
        };
        let found = number("formatVersion").and_then(|number| u32::try_from(number).ok());
        let found = found.ok_or_else(|| corrupt("has no format version"))?;
        if found > FORMAT_VERSION {
            return Err(StorageError::NewerFormat { path, found, supported: FORMAT_VERSION });
        }
        let keyspaces = document
            .get("keyspaces")
            .and_then(ValueRef::as_array)
            .into_iter()
            .flat_map(|array| array.iter().collect::<Vec<_>>())
            .map(|value| value.as_document().and_then(read_keyspace))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| corrupt("has malformed statistics"))?;
        Ok(Some(Self {
            engine: document.get("engine").and_then(ValueRef::as_str).unwrap_or_default().to_owned(),
            watermark: Lsn(number("watermark").ok_or_else(|| corrupt("has no watermark"))?),
            keyspaces,
        }))
    }

    /// Replaces the manifest atomically and durably.
    pub fn write(&self, directory: &Path) -> Result<()> {
        let path = directory.join(FILE_NAME);
        let temporary = directory.join("manifest.tmp");
        let io = |error| StorageError::io(&temporary, error);
        let content = self.encode();
        let mut file = File::create(&temporary).map_err(io)?;
        file.write_all(&crc32c::crc32c(&content).to_le_bytes()).map_err(io)?;
        file.write_all(&content).map_err(io)?;
        file.sync_all().map_err(io)?;
        std::fs::rename(&temporary, &path).map_err(io)?;
        File::open(directory).and_then(|directory| directory.sync_all()).map_err(io)
    }

    fn encode(&self) -> Vec<u8> {
        let mut content = Vec::new();
        let mut writer = Writer::new(&mut content);
        writer
            .append("formatVersion", i64::from(FORMAT_VERSION))
            .append("engine", self.engine.as_str())
            .append("watermark", self.watermark.0 as i64)
            .begin_array("keyspaces");
        for (index, (keyspace, statistics)) in self.keyspaces.iter().enumerate() {
            writer.push(index, &write_keyspace(*keyspace, statistics));
        }
        writer.end().end();
        content
    }
}

fn write_keyspace(keyspace: KeyspaceId, statistics: &KeyspaceStatistics) -> DocumentBuf {
    let live: bunko_bson::ArrayBuf =
        statistics.live.iter().flat_map(|(&segment, &bytes)| [segment as i64, bytes as i64]).collect();
    DocumentBuf::new()
        .with("id", i64::from(keyspace.0))
        .with("entries", statistics.entries as i64)
        .with("bytes", statistics.bytes as i64)
        .with("live", &live)
}

fn read_keyspace(document: DocumentRef<'_>) -> Option<(KeyspaceId, KeyspaceStatistics)> {
    let number = |value| if let Some(ValueRef::Int64(number)) = value { u64::try_from(number).ok() } else { None };
    let live: Vec<u64> =
        document.get("live")?.as_array()?.iter().map(|value| number(Some(value))).collect::<Option<_>>()?;
    Some((
        KeyspaceId(u32::try_from(number(document.get("id"))?).ok()?),
        KeyspaceStatistics {
            entries: number(document.get("entries"))?,
            bytes: number(document.get("bytes"))?,
            live: live.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect(),
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let statistics = KeyspaceStatistics { entries: 2, bytes: 30, live: [(0, 10), (3, 20)].into_iter().collect() };
        Manifest { engine: "lsm".into(), watermark: Lsn(777), keyspaces: vec![(KeyspaceId(4), statistics)] }
    }

    #[test]
    fn what_is_written_is_read() {
        let directory = tempfile::tempdir().expect("temporary directory");
        assert!(Manifest::read(directory.path()).expect("readable").is_none());
        manifest().write(directory.path()).expect("written");
        let read = Manifest::read(directory.path()).expect("readable").expect("present");
        assert_eq!((read.engine.as_str(), read.watermark), ("lsm", Lsn(777)));
        assert_eq!(read.keyspaces, manifest().keyspaces);
    }

    #[test]
    fn a_flipped_byte_and_a_newer_format_are_named() {
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
            Err(StorageError::NewerFormat { found: 99, supported: FORMAT_VERSION, .. })
        ));
    }
}
