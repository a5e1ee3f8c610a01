//! The files of a truncation: its intent, and what it changes; see [`super::truncate`].

use super::segment::{SEGMENT_BYTES, Segment, offset_in_segment, segment_of};
use crate::{Lsn, Result, StorageError, files};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const FILE_NAME: &str = "truncation.intent";
const INTENT_BYTES: usize = 12;
/// Bytes of zeros that are written at a time.
const ZEROS_BYTES: usize = 1 << 20;

/// Reads the position to which an unfinished truncation leads; `None` if there is no intent.
///
/// # Errors
/// [`StorageError::Corrupt`] for a damaged intent.
pub(super) fn read(directory: &Path) -> Result<Option<Lsn>> {
    let path = path(directory);
    let Some(bytes) = files::read(&path)? else { return Ok(None) };
    let intended = <&[u8; INTENT_BYTES]>::try_from(bytes.as_slice()).ok().and_then(|bytes| {
        let (position, checksum) = bytes.split_at(8);
        (bunko_checksum::crc32c(position).to_le_bytes() == *checksum).then_some(position)
    });
    let position = intended.and_then(|position| position.try_into().ok()).map(u64::from_le_bytes);
    let corrupt = || StorageError::Corrupt { file: path.clone(), offset_bytes: 0, found: "a damaged intent".into() };
    position.map(|position| Some(Lsn(position))).ok_or_else(corrupt)
}

fn path(directory: &Path) -> PathBuf {
    directory.join(FILE_NAME)
}

/// An intent under a temporary name, which no start reads.
pub(super) struct Prepared {
    directory: PathBuf,
    temporary: PathBuf,
}

/// Writes an intent under a temporary name; it takes effect when it is made durable.
pub(super) fn prepare(directory: &Path, end: Lsn) -> Result<Prepared> {
    let temporary = directory.join("truncation.tmp");
    let position = end.0.to_le_bytes();
    let io = |error| StorageError::io(&temporary, error);
    let mut file = files::create(&temporary)?;
    file.write_all(&position).map_err(io)?;
    file.write_all(&bunko_checksum::crc32c(&position).to_le_bytes()).map_err(io)?;
    file.sync_all().map_err(io)?;
    Ok(Prepared { directory: directory.to_owned(), temporary })
}

impl Prepared {
    /// Makes the intent durable. After an error, the next start may find the intent or not.
    pub fn publish(self) -> Result<()> {
        files::rename(&self.temporary, &path(&self.directory))?;
        files::sync_directory(&self.directory)
    }
}

/// Carries out a truncation whose intent is durable, and removes the intent. `segment` is the one with the new end; a
/// start that finds it missing makes it anew.
pub(super) fn carry_out(directory: &Path, segment: Option<&Segment>, end: Lsn) -> Result<()> {
    for number in Segment::list(directory)?.into_iter().rev().filter(|number| *number > segment_of(end.0)) {
        files::remove(&Segment::path(directory, number))?;
    }
    if let Some(segment) = segment {
        zero_from(segment, end)?;
    }
    // The later segments must be gone before the intent: without it, a start would read them.
    files::sync_directory(directory)?;
    files::remove(&path(directory))?;
    files::sync_directory(directory)
}

fn zero_from(segment: &Segment, end: Lsn) -> Result<()> {
    let io = |error| StorageError::io(&segment.path, error);
    let zeros = vec![0; ZEROS_BYTES.min(SEGMENT_BYTES as usize)];
    let (mut offset, length) = (offset_in_segment(end.0), segment.length_bytes());
    while offset < length {
        let part = &zeros[..zeros.len().min((length - offset) as usize)];
        segment.file.write_all_at(part, offset).map_err(io)?;
        offset += part.len() as u64;
    }
    segment.file.sync_data().map_err(io)
}
