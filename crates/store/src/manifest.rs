//! The manifest, with which recovery begins: the format version, the last checkpoint's watermark, and the statistics at
//! it.
//!
//! The file is a sequence of documents, each after its checksum. The first says how many follow. Lists and engines'
//! notes are split into parts, so that the size limit of a document limits neither collections nor segments.

use crate::checked_documents::{self, Parts, number};
use crate::{KeyspaceId, KeyspaceStatistics, Lsn, Result, StorageError, files};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, Writer};
use bunko_replica::Terms;
use std::path::{Path, PathBuf};

/// Version of the format. It is raised whenever another version of the program could misread the files of this one.
pub(crate) const FORMAT_VERSION: u32 = 6;
/// The oldest format that this program reads; directories of it have no terms. Some programs that wrote format 4 did
/// not note the types of values in index keys, although others had begun to, so the notes of that format cannot be
/// trusted.
pub(crate) const OLDEST_FORMAT: u32 = 5;

const FILE_NAME: &str = "manifest.bson";
/// Number of a list's elements in one document of the file.
const PART_ELEMENTS: usize = 10_000;
/// Bytes of an engine's note in one document of the file.
const PART_BYTES: usize = 4 << 20;

/// The durable description of a data directory.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Manifest {
    pub watermark: Lsn,
    /// Position of the first record of the chain that is open at the watermark of a secondary.
    pub open_chain: Option<Lsn>,
    /// Time when the last record below the watermark, or a later one, was written; milliseconds since 1970.
    pub time_ms: u64,
    /// Position from which all records have notes; `None` if notes are not written.
    pub noted_from: Option<Lsn>,
    /// Maximum bytes of the history; `None` if no history is kept.
    pub history_bytes: Option<u64>,
    pub keyspaces: Vec<(KeyspaceId, KeyspaceStatistics)>,
    /// Each engine's name and note, the store's own first.
    pub engines: Vec<(String, DocumentBuf)>,
    /// Keyspaces that are not in the store's own engine, with the names of their engines.
    pub routes: Vec<(KeyspaceId, String)>,
    /// Values that the store remembers, as `Remembered` encodes them.
    pub remembered: Vec<u8>,
    /// Terms that began below the watermark, without those that ended before the log begins.
    pub terms: Terms,
    /// The commit point, unless it followed the watermark.
    pub committed: Option<Lsn>,
    /// Whether the file was read in an older format.
    pub is_of_older_format: bool,
}

impl Manifest {
    /// The manifest's file.
    pub fn path(directory: &Path) -> PathBuf {
        directory.join(FILE_NAME)
    }

    /// The error for impossible contents of the manifest.
    pub fn corrupt(directory: &Path, found: &str) -> StorageError {
        StorageError::Corrupt { file: Self::path(directory), offset_bytes: 0, found: found.to_owned() }
    }

    /// Reads the manifest; `None` if the directory is new.
    pub fn read(directory: &Path) -> Result<Option<Self>> {
        let path = Self::path(directory);
        let Some(bytes) = files::read(&path)? else { return Ok(None) };
        let mut parts = Parts::new(&path, &bytes);
        let header = parts.next()?;
        let found = number(header, "formatVersion").and_then(|number| u32::try_from(number).ok());
        let found = found.ok_or_else(|| parts.corrupt("has no format version"))?;
        if !(OLDEST_FORMAT..=FORMAT_VERSION).contains(&found) {
            return Err(StorageError::OtherFormat { path: path.clone(), found, supported: FORMAT_VERSION });
        }
        let mut manifest = Self {
            watermark: Lsn(number(header, "watermark").ok_or_else(|| parts.corrupt("has no watermark"))?),
            open_chain: number(header, "openChain").map(Lsn),
            time_ms: number(header, "timeMs").unwrap_or(0),
            noted_from: number(header, "notedFrom").map(Lsn),
            history_bytes: number(header, "historyBytes"),
            committed: number(header, "committed").map(Lsn),
            is_of_older_format: found < FORMAT_VERSION,
            ..Self::default()
        };
        let count = number(header, "parts").ok_or_else(|| parts.corrupt("has no number of parts"))?;
        let mut notes: Vec<(String, Vec<u8>)> = Vec::new();
        for _ in 0..count {
            let part = parts.next()?;
            manifest.add(part, &mut notes).ok_or_else(|| parts.corrupt("has a malformed part"))?;
        }
        for (engine, bytes) in notes {
            let length = bytes.first_chunk().map(|length| u32::from_le_bytes(*length) as usize);
            if length != Some(bytes.len()) {
                return Err(parts.corrupt("has a cut note"));
            }
            manifest.engines.push((engine, DocumentBuf::from_trusted(bytes)));
        }
        parts.end().map(|()| Some(manifest))
    }

    /// Adds the contents of one document after the first; `None` if it is malformed.
    fn add(&mut self, part: DocumentRef<'_>, notes: &mut Vec<(String, Vec<u8>)>) -> Option<()> {
        match part.first()?.name {
            "keyspaces" => self.keyspaces.extend(read_list(part, "keyspaces", read_keyspace)?),
            "terms" => {
                let further = read_list(part, "terms", read_term)?;
                self.terms = Terms::of(self.terms.iter().chain(further))?;
            }
            "routes" => self.routes.extend(read_list(part, "routes", read_route)?),
            "engine" => {
                let engine = part.get("engine")?.as_str()?;
                let Some(ValueRef::Binary { bytes, .. }) = part.get("note") else { return None };
                match notes.last_mut() {
                    Some((last, note)) if last == engine => note.extend_from_slice(bytes),
                    _ => notes.push((engine.to_owned(), bytes.to_owned())),
                }
            }
            "remembered" => {
                let Some(ValueRef::Binary { bytes, .. }) = part.get("remembered") else { return None };
                self.remembered.extend_from_slice(bytes);
            }
            _ => return None,
        }
        Some(())
    }

    /// Replaces the manifest atomically and durably.
    pub fn write(&self, directory: &Path) -> Result<()> {
        checked_documents::replace(&Self::path(directory), &self.parts())
    }

    fn parts(&self) -> Vec<DocumentBuf> {
        let mut parts = vec![DocumentBuf::new()];
        for (engine, note) in &self.engines {
            for bytes in note.as_ref().as_bytes().chunks(PART_BYTES) {
                let note = ValueRef::Binary { subtype: 0, bytes };
                parts.push(DocumentBuf::new().with("engine", engine.as_str()).with("note", note));
            }
        }
        parts.extend(list_parts("keyspaces", &self.keyspaces, |(keyspace, statistics)| {
            DocumentBuf::new()
                .with("id", i64::from(keyspace.0))
                .with("entries", statistics.entries as i64)
                .with("bytes", statistics.bytes as i64)
        }));
        parts.extend(list_parts("routes", &self.routes, |(keyspace, engine)| {
            DocumentBuf::new().with("id", i64::from(keyspace.0)).with("engine", engine.as_str())
        }));
        let terms: Vec<_> = self.terms.iter().collect();
        parts.extend(list_parts("terms", &terms, |(term, at)| {
            DocumentBuf::new().with("term", *term as i64).with("lsn", *at as i64)
        }));
        parts.extend(
            self.remembered
                .chunks(PART_BYTES)
                .map(|bytes| DocumentBuf::new().with("remembered", ValueRef::Binary { subtype: 0, bytes })),
        );
        let mut header = DocumentBuf::new()
            .with("formatVersion", i64::from(FORMAT_VERSION))
            .with("watermark", self.watermark.0 as i64)
            .with("timeMs", self.time_ms as i64)
            .with("parts", parts.len() as i64 - 1);
        if let Some(open_chain) = self.open_chain {
            header.append("openChain", open_chain.0 as i64);
        }
        if let Some(noted_from) = self.noted_from {
            header.append("notedFrom", noted_from.0 as i64);
        }
        if let Some(history_bytes) = self.history_bytes {
            header.append("historyBytes", history_bytes as i64);
        }
        if let Some(committed) = self.committed {
            header.append("committed", committed.0 as i64);
        }
        parts[0] = header;
        parts
    }
}

/// Splits a list into documents of at most [`PART_ELEMENTS`] elements each.
fn list_parts<T>(name: &str, list: &[T], encode: impl Fn(&T) -> DocumentBuf) -> Vec<DocumentBuf> {
    let part = |elements: &[T]| {
        let mut part = Vec::new();
        let mut writer = Writer::new(&mut part);
        writer.begin_array(name);
        for (index, element) in elements.iter().enumerate() {
            writer.push(index, &encode(element));
        }
        writer.end().end();
        DocumentBuf::from_trusted(part)
    };
    list.chunks(PART_ELEMENTS).map(part).collect()
}

/// The elements of a list of documents; `None` if any is malformed.
fn read_list<T>(document: DocumentRef<'_>, name: &str, read: impl Fn(DocumentRef<'_>) -> Option<T>) -> Option<Vec<T>> {
    document.get(name)?.as_array()?.iter().map(|value| read(value.as_document()?)).collect()
}

fn keyspace_id(document: DocumentRef<'_>) -> Option<KeyspaceId> {
    u32::try_from(number(document, "id")?).ok().map(KeyspaceId)
}

fn read_keyspace(document: DocumentRef<'_>) -> Option<(KeyspaceId, KeyspaceStatistics)> {
    let statistics = KeyspaceStatistics { entries: number(document, "entries")?, bytes: number(document, "bytes")? };
    Some((keyspace_id(document)?, statistics))
}

fn read_route(document: DocumentRef<'_>) -> Option<(KeyspaceId, String)> {
    Some((keyspace_id(document)?, document.get("engine")?.as_str()?.to_owned()))
}

fn read_term(document: DocumentRef<'_>) -> Option<(u64, u64)> {
    Some((number(document, "term")?, number(document, "lsn")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        Manifest {
            watermark: Lsn(777),
            open_chain: Some(Lsn(750)),
            time_ms: 5,
            noted_from: Some(Lsn(700)),
            history_bytes: Some(9),
            keyspaces: vec![(KeyspaceId(4), KeyspaceStatistics { entries: 2, bytes: 30 })],
            engines: vec![("lsm".into(), DocumentBuf::new().with("extents", 3))],
            routes: vec![(KeyspaceId(5), "memory".into())],
            remembered: vec![1, b'k', 1, b'v'],
            terms: Terms::of([(3, 640)]).expect("one"),
            committed: Some(Lsn(760)),
            is_of_older_format: false,
        }
    }

    #[test]
    fn a_written_manifest_is_read_back() {
        let directory = tempfile::tempdir().expect("temporary directory");
        assert!(Manifest::read(directory.path()).expect("readable").is_none());
        manifest().write(directory.path()).expect("written");
        let read = Manifest::read(directory.path()).expect("readable").expect("present");
        assert_eq!(read, manifest());
    }

    #[test]
    fn many_collections_and_long_notes_are_read_again() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let statistics = |number: u32| KeyspaceStatistics { entries: number.into(), bytes: u64::from(number) << 20 };
        // The shares of 10,000 collections in 100 segments, at 60 bytes each.
        let shares = vec![7_u8; 60_000_000];
        let note = DocumentBuf::new().with("shares", ValueRef::Binary { subtype: 0, bytes: &shares });
        let manifest = Manifest {
            keyspaces: (0..20_000).map(|number| (KeyspaceId(number), statistics(number))).collect(),
            engines: vec![("lsm".into(), note), ("memory".into(), DocumentBuf::new())],
            routes: (0..20_001).map(|number| (KeyspaceId(number), "memory".into())).collect(),
            remembered: vec![7; 2 * PART_BYTES + 1],
            ..manifest()
        };
        manifest.write(directory.path()).expect("written");
        let read = Manifest::read(directory.path()).expect("readable").expect("present");
        assert!(read == manifest, "read back as something else");
    }

    #[test]
    fn a_cut_file_is_named() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join(FILE_NAME);
        manifest().write(directory.path()).expect("written");
        let bytes = std::fs::read(&path).expect("readable");
        for end in 0..bytes.len() {
            std::fs::write(&path, &bytes[..end]).expect("written");
            assert!(matches!(Manifest::read(directory.path()), Err(StorageError::Corrupt { .. })), "{end}");
        }
        std::fs::write(&path, [bytes.as_slice(), &[0]].concat()).expect("written");
        assert!(matches!(Manifest::read(directory.path()), Err(StorageError::Corrupt { .. })));
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
        let mut bytes = bunko_checksum::crc32c(&newer).to_le_bytes().to_vec();
        bytes.extend(newer);
        std::fs::write(&path, &bytes).expect("written");
        assert!(matches!(
            Manifest::read(directory.path()),
            Err(StorageError::OtherFormat { found: 99, supported: FORMAT_VERSION, .. })
        ));
    }
}
