//! The files of fixed size that make up the log.

use crate::{Result, StorageError, files};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Size of every segment file. The largest message (48 MB) fits into one.
pub const SEGMENT_BYTES: u64 = if cfg!(feature = "small-segments") { 2 } else { 64 } * 1024 * 1024;
/// Size of a segment's own header; records begin after it.
pub(super) const SEGMENT_HEADER_BYTES: u64 = 64;

const MAGIC: &[u8; 8] = b"BUNKOLOG";
const VERSION: u32 = 1;

/// The segment that contains a log position.
pub fn segment_of(position: u64) -> u64 {
    position / SEGMENT_BYTES
}

/// Offset of a log position in its segment's file.
pub(super) fn offset_in_segment(position: u64) -> u64 {
    position % SEGMENT_BYTES
}

/// Position of the first record of a segment.
pub(crate) fn first_record(number: u64) -> u64 {
    number * SEGMENT_BYTES + SEGMENT_HEADER_BYTES
}

/// One file of the log.
#[derive(Debug)]
pub(super) struct Segment {
    pub number: u64,
    pub file: File,
    pub path: PathBuf,
    /// Length of the file; blocks on disk are allocated for all of it. A segment that was made on a full disk is short.
    length_bytes: AtomicU64,
}

impl Segment {
    /// A segment from a file that has its header.
    pub fn new(number: u64, file: File, path: PathBuf) -> std::io::Result<Self> {
        let length_bytes = AtomicU64::new(file.metadata()?.len().min(SEGMENT_BYTES));
        Ok(Self { number, file, path, length_bytes })
    }

    /// Length of the file: [`SEGMENT_BYTES`], or less if the disk was full.
    pub fn length_bytes(&self) -> u64 {
        self.length_bytes.load(Ordering::Acquire)
    }

    /// Makes the file that long if it is shorter, with blocks allocated for all of it.
    pub fn extend(&self, length_bytes: u64) -> std::io::Result<()> {
        allocate(&self.file, length_bytes)?;
        self.length_bytes.fetch_max(length_bytes, Ordering::Release);
        Ok(())
    }

    pub fn path(directory: &Path, number: u64) -> PathBuf {
        directory.join(format!("{number:012}.segment"))
    }

    /// The numbers of all segment files in a directory, ascending.
    pub fn list(directory: &Path) -> Result<Vec<u64>> {
        let number = |path: &PathBuf| path.file_name()?.to_str()?.strip_suffix(".segment")?.parse().ok();
        let mut numbers: Vec<u64> = files::entries(directory)?.iter().filter_map(number).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Opens an existing segment and checks its header.
    pub fn open(directory: &Path, number: u64) -> Result<Self> {
        let path = Self::path(directory, number);
        let io = |error| StorageError::io(&path, error);
        let file = files::open_to_write(&path)?;
        let mut header = [0; SEGMENT_HEADER_BYTES as usize];
        let corrupt = |found: &str| StorageError::Corrupt { file: path.clone(), offset_bytes: 0, found: found.into() };
        file.read_exact_at(&mut header, 0).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => corrupt("segment shorter than its header"),
            _ => io(error),
        })?;
        if header != Self::header(number) {
            return Err(corrupt("not the header of this segment"));
        }
        Self::new(number, file, path.clone()).map_err(io)
    }

    /// Writes the header that makes a preallocated file this segment.
    pub fn initialise(file: &File, number: u64) -> std::io::Result<()> {
        file.write_all_at(&Self::header(number), 0)
    }

    pub fn header(number: u64) -> [u8; SEGMENT_HEADER_BYTES as usize] {
        let mut header = [0; SEGMENT_HEADER_BYTES as usize];
        header[..8].copy_from_slice(MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[16..24].copy_from_slice(&number.to_le_bytes());
        header[24..32].copy_from_slice(&SEGMENT_BYTES.to_le_bytes());
        let checksum = bunko_checksum::crc32c(&header[..32]);
        header[32..36].copy_from_slice(&checksum.to_le_bytes());
        header
    }

    /// The error for a missing segment.
    pub fn missing(directory: &Path, number: u64, position: u64) -> StorageError {
        StorageError::Corrupt {
            file: Self::path(directory, number),
            offset_bytes: offset_in_segment(position),
            found: "the segment is missing".into(),
        }
    }

    /// The error for bad bytes at a log position.
    pub fn corrupt(&self, position: u64, found: impl Into<String>) -> StorageError {
        StorageError::Corrupt {
            file: self.path.clone(),
            offset_bytes: offset_in_segment(position),
            found: found.into(),
        }
    }
}

/// Makes a segment's file that long, with disk blocks allocated for all of it. Costs nothing for a recycled file, which
/// has its blocks already.
pub(super) fn allocate(file: &File, length_bytes: u64) -> std::io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    match fallocate(file, FallocateFlags::empty(), 0, length_bytes) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => zero_fill(file, length_bytes),
        Err(error) => Err(error.into()),
    }
}

/// For filesystems without fallocate (ext3): writes zeros from the end of the file on.
fn zero_fill(file: &File, length_bytes: u64) -> std::io::Result<()> {
    let zeros = vec![0; 1 << 20];
    let mut position = file.metadata()?.len();
    while position < length_bytes {
        let length = zeros.len().min((length_bytes - position) as usize);
        file.write_all_at(&zeros[..length], position)?;
        position += length as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_fill_reaches_the_full_size() {
        let file = tempfile::tempfile().expect("temporary file");
        zero_fill(&file, SEGMENT_BYTES).expect("room");
        assert_eq!(file.metadata().expect("file").len(), SEGMENT_BYTES);
    }
}
