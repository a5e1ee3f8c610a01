//! The manifest of a backup: its files with their checksums, and the moment that it has.
//!
//! The file has two lines: the manifest as JSON, and the CRC-32C of that line.

use crate::Result;
use bunko_store::{IMAGE_RANGE_BYTES, ImageFile, ImageList, Position};
use bunko_tools::ToolError;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Version of the format. A program refuses any other.
pub(crate) const FORMAT: u32 = 1;

/// A finished backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Manifest {
    /// Version of this format.
    pub format: u32,
    /// The backup's name: when it was made.
    pub id: String,
    /// The server that it is of.
    pub server: String,
    /// The server's storage engine.
    pub engine: String,
    /// Format of the data directory.
    pub data_format: u32,
    /// Length of the log's segments in bytes.
    pub segment_bytes: u64,
    /// Term of the last record.
    pub term: u64,
    /// The log position at which the image ends.
    pub end: u64,
    /// The backup has all records up to this time, in milliseconds since 1970.
    pub time_ms: u64,
    /// When it was made, by the clock of the machine that made it.
    pub made_ms: u64,
    /// Its files, in the order of their names.
    pub files: Vec<FileEntry>,
}

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileEntry {
    /// Its path below the data directory.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// The backup that copied it.
    pub from: String,
    /// The CRC-32C of each range of 4 MiB.
    pub ranges: Vec<u32>,
}

/// The refusal of a target or a manifest of a later format than `newest`.
pub(crate) fn later_format(path: &Path, format: u64, newest: u32) -> ToolError {
    ToolError::Usage(format!(
        "{}: has format {format}, and this version reads 1 to {newest}: another version of Bunko wrote it: use that version",
        path.display()
    ))
}

impl Manifest {
    /// The text of the file.
    pub fn text(&self) -> String {
        let json = serde_json::to_string(self).unwrap_or_default();
        format!("{json}\n{:08x}\n", bunko_checksum::crc32c(json.as_bytes()))
    }

    /// Reads the manifest of the backup `id`, whose names are safe to use in paths. Errors name `path`.
    /// # Errors
    /// `Damaged` with the path; `Usage` for another format.
    pub fn parse(path: &Path, id: &str, bytes: Vec<u8>) -> Result<Self> {
        let damaged =
            |found: &str| ToolError::Damaged { path: path.to_owned(), offset_bytes: 0, found: found.to_owned() };
        let text = String::from_utf8(bytes).map_err(|_| damaged("is not text"))?;
        let (json, checksum) = text.split_once('\n').ok_or_else(|| damaged("is cut"))?;
        if checksum != format!("{:08x}\n", bunko_checksum::crc32c(json.as_bytes())) {
            return Err(damaged("fails its checksum"));
        }
        let value: serde_json::Value = serde_json::from_str(json).map_err(|_| damaged("is not JSON"))?;
        match value.get("format").and_then(serde_json::Value::as_u64) {
            None => return Err(damaged("names no format")),
            Some(format) if format != u64::from(FORMAT) => return Err(later_format(path, format, FORMAT)),
            Some(_) => {}
        }
        let manifest: Self = serde_json::from_value(value).map_err(|error| damaged(&error.to_string()))?;
        let is_named_so = is_plain(&manifest.id) && manifest.id == id;
        let is_consistent =
            is_named_so && manifest.list().is_some() && manifest.files.iter().all(FileEntry::is_consistent);
        if is_consistent { Ok(manifest) } else { Err(damaged("names files that no backup has")) }
    }

    /// The image's list of files; `None` if it names a file that no image has.
    pub fn list(&self) -> Option<ImageList> {
        let file = |file: &FileEntry| ImageFile { name: file.name.clone(), bytes: file.bytes };
        let end = Position { term: self.term, end: self.end };
        let list = ImageList { id: self.id.clone(), end, files: self.files.iter().map(file).collect() };
        ImageList::parse(list.document().as_ref())
    }

    /// The file with that name.
    pub fn file(&self, name: &str) -> Option<&FileEntry> {
        self.files.binary_search_by(|file| file.name.as_str().cmp(name)).ok().map(|index| &self.files[index])
    }

    /// Number of bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

impl FileEntry {
    fn is_consistent(&self) -> bool {
        is_plain(&self.from) && self.ranges.len() as u64 == self.bytes.div_ceil(IMAGE_RANGE_BYTES)
    }
}

/// Whether the name of a backup is safe to use in paths.
fn is_plain(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn manifest(id: &str, files: &[(&str, &str)]) -> Manifest {
        let entry = |(name, from): &(&str, &str)| FileEntry {
            name: (*name).into(),
            bytes: 5,
            from: (*from).into(),
            ranges: vec![7],
        };
        Manifest {
            format: FORMAT,
            id: id.into(),
            server: "here".into(),
            engine: "lsm".into(),
            data_format: 6,
            segment_bytes: 1,
            term: 0,
            end: 64,
            time_ms: 1,
            made_ms: 1,
            files: files.iter().map(entry).collect(),
        }
    }

    #[test]
    fn a_manifest_is_read_as_it_was_written_and_damage_is_named() {
        let read = |bytes: &[u8]| Manifest::parse(Path::new("a.json"), "a", bytes.to_vec());
        let made = manifest("a", &[("log/0", "a"), ("manifest.bson", "b")]);
        let text = made.text().into_bytes();
        assert_eq!(read(&text).ok(), Some(made.clone()));
        for end in 0..text.len() {
            assert!(matches!(read(&text[..end]), Err(ToolError::Damaged { .. })), "{end}");
        }
        for bad in [
            manifest("a", &[("../x", "a"), ("manifest.bson", "a")]),
            manifest("a", &[("log/0", "../a"), ("manifest.bson", "a")]),
            manifest("b", &[("manifest.bson", "a")]),
        ] {
            assert!(matches!(read(bad.text().as_bytes()), Err(ToolError::Damaged { .. })), "{bad:?}");
        }
        let later = Manifest { format: 2, ..made };
        let refused = read(later.text().as_bytes()).expect_err("of another version").to_string();
        assert!(refused.contains("format 2") && refused.contains("use that version"), "{refused}");
    }
}
