//! LMDB's meta pages, the roots of committed states. LMDB keeps two, for the last commit and the one before, and trusts
//! them. They are checked before LMDB opens the file.

use crate::corruption::corrupt;
use crate::page::{HEADER_BYTES, u64_at};
use crate::tree::Tree;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_store::{Result, StorageError, files};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Offsets of the fields that we read in a meta page.
/// Source: `MDB_meta` in LMDB 0.9 (`mdb.c`), after a page header.
const FREE: usize = HEADER_BYTES + 24;
const MAIN: usize = FREE + Tree::ENCODED_BYTES;
const LAST_PAGE: usize = MAIN + Tree::ENCODED_BYTES;
const TRANSACTION: usize = LAST_PAGE + 8;
/// Number of bytes at the beginning of a meta page that are in use.
pub(crate) const META_BYTES: usize = TRANSACTION + 8;

/// The meta page of a committed state.
#[derive(Clone, Copy)]
pub(crate) struct Meta {
    pub transaction: u64,
    /// Number of pages that LMDB has ever used.
    pub pages: u64,
    /// The tree of free pages.
    pub free: Tree,
    /// The tree with the names of all other trees.
    pub main: Tree,
    pub page_bytes: u32,
    /// Checksum of the whole meta page.
    pub checksum: u32,
}

impl Meta {
    pub fn parse(bytes: &[u8; META_BYTES]) -> Option<Self> {
        let number = |at| u64_at(bytes, at).expect("within a meta page");
        let tree = |at: usize| Tree::parse(&bytes[at..at + Tree::ENCODED_BYTES]);
        Some(Self {
            transaction: number(TRANSACTION),
            pages: number(LAST_PAGE).checked_add(1)?,
            free: tree(FREE)?,
            main: tree(MAIN)?,
            // LMDB stores the page size in a field of this tree that other trees leave unused.
            page_bytes: u32::from_ne_bytes([bytes[FREE], bytes[FREE + 1], bytes[FREE + 2], bytes[FREE + 3]]),
            checksum: bunko_checksum::crc32c(bytes),
        })
    }

    /// The commit's note for the manifest.
    pub fn note(&self, file_bytes: u64) -> DocumentBuf {
        DocumentBuf::new()
            .with("fileBytes", file_bytes as i64)
            .with("transaction", self.transaction as i64)
            .with("pageBytes", i64::from(self.page_bytes))
            .with("metaChecksum", i64::from(self.checksum))
    }
}

/// A number in a note; `None` if it is missing, negative or of another type.
pub(crate) fn noted(note: DocumentRef<'_>, name: &str) -> Option<u64> {
    match note.get(name) {
        Some(ValueRef::Int64(number)) => u64::try_from(number).ok(),
        _ => None,
    }
}

/// Checks the meta pages against the file's note, if there is one, before LMDB opens the file.
pub(crate) fn check(path: &Path, note: Option<DocumentRef<'_>>) -> Result<()> {
    let file = files::open(path)?;
    let noted = |name| note.and_then(|note| noted(note, name));
    // The file never gets shorter, so a short one is damaged. A read beyond its end, in the map, would end the process.
    let length_bytes = file.metadata().map_err(|source| StorageError::io(path, source))?.len();
    if let Some(expected) = noted("fileBytes").filter(|expected| *expected > length_bytes) {
        return Err(corrupt(path, length_bytes, format!("ends, though it had {expected} bytes")));
    }
    let first = read(&file, path, 0)?;
    let page_bytes = noted("pageBytes").unwrap_or(u64::from(first.page_bytes));
    for (page, meta) in [(0, first), (1, read(&file, path, page_bytes)?)] {
        let is_sane = u64::from(meta.page_bytes) == page_bytes
            && page_bytes.is_power_of_two()
            && (512..=1 << 16).contains(&page_bytes)
            // A commit writes meta page 0 or 1, by the parity of its transaction.
            && (meta.transaction % 2 == page || meta.transaction == 0);
        let is_as_noted =
            noted("transaction") != Some(meta.transaction) || noted("metaChecksum") == Some(u64::from(meta.checksum));
        if !is_sane || !is_as_noted {
            return Err(corrupt(path, page * page_bytes, "a meta page other than the one that was written"));
        }
    }
    Ok(())
}

fn read(file: &File, path: &Path, offset_bytes: u64) -> Result<Meta> {
    let mut bytes = [0; META_BYTES];
    file.read_exact_at(&mut bytes, offset_bytes).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => corrupt(path, offset_bytes, "ends before its second meta page"),
        _ => StorageError::io(path, error),
    })?;
    Meta::parse(&bytes).ok_or_else(|| corrupt(path, offset_bytes, "a meta page other than the one that was written"))
}
