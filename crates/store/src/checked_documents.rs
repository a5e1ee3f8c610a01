//! Small files of documents, each after its checksum. A file is replaced as a whole.

use crate::planted::{self, Bug};
use crate::{Result, StorageError, files};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use std::io::Write;
use std::path::Path;

/// Replaces a file atomically and durably.
///
/// # Errors
/// Errors of the files; the file then is as before, or has the new contents.
pub fn replace(path: &Path, documents: &[DocumentBuf]) -> Result<()> {
    let temporary = path.with_extension("tmp");
    let io = |error| StorageError::io(&temporary, error);
    let mut file = files::create(&temporary)?;
    for document in documents {
        let content = document.as_ref().as_bytes();
        file.write_all(&bunko_checksum::crc32c(content).to_le_bytes()).map_err(io)?;
        file.write_all(content).map_err(io)?;
    }
    file.sync_all().map_err(io)?;
    files::rename(&temporary, path)?;
    let directory = path.parent().expect("a file is in a directory");
    if planted::active(Bug::NoDirectorySync) { Ok(()) } else { files::sync_directory(directory) }
}

/// Reads a file of one document; `None` if there is no such file.
///
/// # Errors
/// Errors of the files; [`StorageError::Corrupt`].
pub fn read_one(path: &Path) -> Result<Option<DocumentBuf>> {
    let Some(bytes) = files::read(path)? else { return Ok(None) };
    let mut parts = Parts::new(path, &bytes);
    let document = parts.next()?.to_owned();
    parts.end()?;
    Ok(Some(document))
}

/// Reads the documents of a file.
pub(crate) struct Parts<'a> {
    path: &'a Path,
    bytes: &'a [u8],
    /// Offset of the next document.
    offset: usize,
}

impl<'a> Parts<'a> {
    pub fn new(path: &'a Path, bytes: &'a [u8]) -> Self {
        Self { path, bytes, offset: 0 }
    }

    pub fn next(&mut self) -> Result<DocumentRef<'a>> {
        let rest = &self.bytes[self.offset..];
        let cut = || self.corrupt("is cut");
        let (checksum, rest) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
        let length = u32::from_le_bytes(*rest.first_chunk().ok_or_else(cut)?) as usize;
        let content = rest.get(..length).ok_or_else(cut)?;
        if u32::from_le_bytes(*checksum) != bunko_checksum::crc32c(content) {
            return Err(self.corrupt("fails its checksum"));
        }
        let document = DocumentRef::parse(content).map_err(|error| self.corrupt(&error.to_string()))?;
        self.offset += checksum.len() + length;
        Ok(document)
    }

    /// Checks that the file ends here.
    /// # Errors
    /// [`StorageError::Corrupt`] if documents are left.
    pub fn end(&self) -> Result<()> {
        if self.offset == self.bytes.len() { Ok(()) } else { Err(self.corrupt("goes on beyond its end")) }
    }

    pub fn corrupt(&self, found: &str) -> StorageError {
        let offset_bytes = self.offset as u64;
        StorageError::Corrupt { file: self.path.to_owned(), offset_bytes, found: found.to_owned() }
    }
}

/// The field `name` as a number; `None` unless it is an `Int64` that is not negative.
pub(crate) fn number(document: DocumentRef<'_>, name: &str) -> Option<u64> {
    match document.get(name) {
        Some(ValueRef::Int64(number)) => u64::try_from(number).ok(),
        _ => None,
    }
}
