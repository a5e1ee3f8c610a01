//! Directories of older formats.

use crate::engines::fake::fake;
use crate::manifest::Manifest;
use crate::{EngineTable, Lsn, Result, StorageError, Store, StoreOptions, Survival};
use std::path::Path;
use std::sync::Arc;

fn table() -> EngineTable {
    EngineTable::only(fake("own", Survival::Durable).0)
}

fn open(directory: &Path) -> Result<Arc<Store>> {
    Store::open(directory, StoreOptions::at_rest(), table())
}

/// Makes a directory's manifest one of another format.
fn put_format(directory: &Path, format: i64) {
    const FIELD: &[u8] = b"\x12formatVersion\0";
    let mut bytes = std::fs::read(Manifest::path(directory)).expect("readable");
    let (checksum, documents) = bytes.split_first_chunk_mut::<4>().expect("a checksum");
    let length = u32::from_le_bytes(*documents.first_chunk().expect("a length")) as usize;
    let header = &mut documents[..length];
    let value = FIELD.len() + header.windows(FIELD.len()).position(|part| part == FIELD).expect("a format");
    header[value..value + 8].copy_from_slice(&format.to_le_bytes());
    *checksum = bunko_checksum::crc32c(header).to_le_bytes();
    std::fs::write(Manifest::path(directory), bytes).expect("written");
}

/// Otherwise an older version could read the log after a kill, and append records without what this format requires.
#[test]
fn a_start_leaves_an_older_format_before_any_record() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path();
    let is_older = || Manifest::read(path).expect("readable").expect("present").is_of_older_format;
    let as_member = |path: &Path| Store::open_member(path, StoreOptions::at_rest(), table(), Lsn(0));
    drop(open(path).expect("opens"));
    for opened in [open, as_member] {
        put_format(path, 5);
        assert!(is_older());
        drop(opened(path).expect("opens"));
        assert!(!is_older());
    }
    put_format(path, 4);
    assert!(matches!(open(path), Err(StorageError::OtherFormat { found: 4, .. })));
}
