//! Reads files of backups, and checks their lengths and every range.

use crate::manifest::{FileEntry, Manifest};
use crate::pieces::Pieces;
use crate::target::{Target, file_of};
use crate::{Result, of_storage};
use bunko_store::{IMAGE_RANGE_BYTES, StorageError, files, segment_of};
use bunko_tools::ToolError;
use std::cell::RefCell;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Takes a range of an object, with its offset in bytes.
type TakeRange<'t> = &'t mut dyn FnMut(u64, &[u8]) -> Result<ControlFlow<()>>;

/// Reads an object range by range. Returns whether it exists.
/// # Errors
/// Errors of the store and of `take`.
pub(crate) fn each_range(target: &Target, name: &str, take: TakeRange<'_>) -> Result<bool> {
    let (mut ranges, mut offset, mut is_over) = (Pieces::new(IMAGE_RANGE_BYTES as usize), 0, false);
    let exists = target.objects().show(name, &mut |bytes| {
        let flow = ranges.add(bytes, &mut |range| {
            let flow = take(offset, range);
            offset += range.len() as u64;
            flow
        })?;
        is_over = flow.is_break();
        Ok(flow)
    })?;
    let last = ranges.last();
    if !is_over && !last.is_empty() {
        // The last range: whether more is wanted makes no difference.
        let _ = take(offset, &last)?;
    }
    Ok(exists)
}

/// Reads a file of a backup, and checks its length and every range.
/// # Errors
/// `Damaged` with the file; errors of the store and of `take`.
pub(crate) fn check_file(
    target: &Target,
    file: &FileEntry,
    take: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
) -> Result<()> {
    let name = file_of(file);
    let damaged = |offset_bytes, found: &str| target.objects().damaged(&name, offset_bytes, found);
    let (mut ranges, mut length) = (file.ranges.iter(), 0);
    let has_length = |length: u64| {
        let found = format!("has {length} bytes instead of {}", file.bytes);
        if length == file.bytes { Ok(()) } else { Err(damaged(length.min(file.bytes), &found)) }
    };
    if let Some(Ok(metadata)) = target.objects().path(&name).map(|path| path.metadata()) {
        has_length(metadata.len())?;
    }
    let exists = each_range(target, &name, &mut |offset, bytes| {
        if ranges.next() != Some(&bunko_checksum::crc32c(bytes)) {
            return Err(damaged(offset, "fails its checksum"));
        }
        length = offset + bytes.len() as u64;
        take(offset, bytes).map(ControlFlow::Continue)
    })?;
    if exists { has_length(length) } else { Err(damaged(0, "is missing")) }
}

/// Copies a file of a backup, and checks it. The copy is durable on return, its name is not.
/// # Errors
/// As [`check_file`]; errors of the files.
pub(crate) fn copy_file(target: &Target, file: &FileEntry, to: &Path) -> Result<()> {
    files::make_directory(to.parent().unwrap_or(to)).map_err(of_storage)?;
    let failed = |cause: io::Error| ToolError::File { path: to.to_owned(), cause };
    let made = files::create(to).map_err(of_storage)?;
    made.set_len(file.bytes).map_err(failed)?;
    check_file(target, file, &mut |offset, bytes| {
        // The file has its length, so zeros are there.
        let is_empty = bytes.iter().all(|byte| *byte == 0);
        if is_empty { Ok(()) } else { made.write_all_at(bytes, offset).map_err(failed) }
    })?;
    made.sync_all().map_err(failed)
}

/// The name of a segment's file.
pub(crate) fn segment_name(number: u64) -> String {
    format!("{number:012}.segment")
}

/// The files of a backup as files of this machine. Objects that are no files here are copied, one segment at a time.
pub(crate) struct LocalFiles<'t> {
    target: &'t Target,
    entries: &'t [FileEntry],
    scratch: RefCell<Option<TempDir>>,
    failure: RefCell<Option<ToolError>>,
}

impl<'t> LocalFiles<'t> {
    /// The files `entries`, in the order of their names.
    pub fn new(target: &'t Target, entries: &'t [FileEntry]) -> Self {
        Self { target, entries, scratch: RefCell::default(), failure: RefCell::default() }
    }

    /// As [`Self::new`], of a finished backup.
    pub fn of(target: &'t Target, manifest: &'t Manifest) -> Self {
        Self::new(target, &manifest.files)
    }

    /// A file's path; `None` if the backup does not have it.
    /// # Errors
    /// As [`copy_file`].
    pub fn path(&self, name: &str) -> Result<Option<PathBuf>> {
        let Some(entry) = self.entries.iter().find(|entry| entry.name == name) else { return Ok(None) };
        if let Some(path) = self.target.objects().path(&file_of(entry)) {
            return Ok(Some(path));
        }
        let made = tempfile::Builder::new().prefix("bunko-backup-").tempdir();
        let scratch = made.map_err(|cause| ToolError::File { path: std::env::temp_dir(), cause })?;
        let to = scratch.path().join(Path::new(name).file_name().unwrap_or_default());
        copy_file(self.target, entry, &to)?;
        // The copy before this one is removed.
        *self.scratch.borrow_mut() = Some(scratch);
        Ok(Some(to))
    }

    /// The path of a segment of the log, of which there may be none. [`Self::outcome`] has the reason then.
    pub fn segment(&self, number: u64) -> PathBuf {
        let name = format!("log/{}", segment_name(number));
        match self.path(&name) {
            Ok(Some(path)) => path,
            Ok(None) => self.target.objects().shown(&format!("files/missing/{name}")),
            Err(error) => {
                *self.failure.borrow_mut() = Some(error);
                PathBuf::from(name)
            }
        }
    }

    /// The outcome of work with segments.
    pub fn outcome<T>(&self, outcome: Result<T, StorageError>) -> Result<T> {
        match self.failure.take() {
            Some(error) => Err(error),
            None => outcome.map_err(of_storage),
        }
    }
}

/// The name of the segment's file in which a position of the log is.
pub(crate) fn segment_name_at(position: u64) -> String {
    segment_name(segment_of(position))
}
