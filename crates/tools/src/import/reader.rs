//! Reads the input and cuts it into chunks of whole records.

use super::cutter::{Cut, Cutter};
use super::options::Source;
use super::queue::Chunk;
use crate::ToolError;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Bytes of one chunk, unless a record is longer.
pub(super) const CHUNK_BYTES: usize = 1024 * 1024;
/// Longest text of one record: enough for a document of the largest size in Extended JSON's longest form.
const RECORD_BYTES_MAX: usize = 128 * 1024 * 1024;
/// Bytes after an error that its message may show.
const SHOWN_BYTES: usize = 256;

/// A part of the input that is still to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    pub start: u64,
    /// `None` is the end of the input.
    pub end: Option<u64>,
    /// Number of its first line.
    pub line: u64,
}

enum Input {
    File(File),
    Stdin(io::Stdin),
}

/// The input, read from its beginning to its end, or gap by gap.
pub(super) struct Reader {
    path: PathBuf,
    input: Input,
    /// Bytes that were read and are in no chunk yet.
    buffer: Vec<u8>,
    /// Bytes of `buffer` that the cutter has seen.
    seen: usize,
    /// Where the records begin.
    records_start: u64,
    /// Place of the buffer's first byte, and its line.
    offset: u64,
    line: u64,
    /// End of the gap that is being read.
    gap_end: Option<u64>,
    /// Whether the gap, or the input, has no bytes after the buffer's.
    is_at_end: bool,
    /// Whether the gap's last chunk was cut.
    is_finished: bool,
}

impl Reader {
    /// Opens the input.
    /// # Errors
    /// `File`.
    pub fn open(source: &Source) -> Result<Self, ToolError> {
        let (path, input) = match source {
            Source::Stdin => (PathBuf::from("-"), Input::Stdin(io::stdin())),
            Source::File(path) => {
                let failed = |cause| ToolError::File { path: path.clone(), cause };
                let file = File::open(path).map_err(failed)?;
                if file.metadata().map_err(failed)?.is_dir() {
                    return Err(failed(io::ErrorKind::IsADirectory.into()));
                }
                (path.clone(), Input::File(file))
            }
        };
        let buffer = Vec::new();
        let (is_at_end, is_finished) = (false, false);
        let (seen, records_start, offset, line, gap_end) = (0, 0, 0, 1, None);
        Ok(Self { path, input, buffer, seen, records_start, offset, line, gap_end, is_at_end, is_finished })
    }

    /// The input's name; `-` is standard input.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Length of the input, if it is a regular file.
    pub fn len_bytes(&self) -> Option<u64> {
        let Input::File(file) = &self.input else { return None };
        file.metadata().ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len())
    }

    /// The position, which is where the records begin once [`Self::take_front`] has taken what precedes them.
    pub fn position(&self) -> Gap {
        Gap { start: self.offset, end: None, line: self.line }
    }

    /// Reads what stands in front of the records. `length` tells its length from the bytes after the position, and
    /// whether these are all; `None` asks for more of them.
    /// # Errors
    /// `File`; `Damaged` if `length` is never satisfied.
    pub fn take_front(&mut self, mut length: impl FnMut(&[u8], bool) -> Option<usize>) -> Result<Vec<u8>, ToolError> {
        let mut wanted = CHUNK_BYTES;
        loop {
            self.fill(wanted)?;
            if let Some(length) = length(&self.buffer, self.is_at_end) {
                let front: Vec<u8> = self.buffer.drain(..length).collect();
                self.offset += length as u64;
                self.records_start = self.offset;
                self.line += count_lines(&front);
                return Ok(front);
            }
            if self.is_at_end || self.buffer.len() >= RECORD_BYTES_MAX {
                return Err(self.endless());
            }
            wanted = self.buffer.len() + CHUNK_BYTES;
        }
    }

    /// Goes to a gap, and reads no further than its end.
    /// # Errors
    /// `File`, if the input is not a regular file.
    pub fn go_to(&mut self, gap: Gap) -> Result<(), ToolError> {
        if let Input::File(file) = &mut self.input {
            let sought = file.seek(SeekFrom::Start(gap.start));
            sought.map_err(|cause| ToolError::File { path: self.path.clone(), cause })?;
        }
        self.buffer.clear();
        self.seen = 0;
        (self.offset, self.line, self.gap_end) = (gap.start, gap.line, gap.end);
        (self.is_at_end, self.is_finished) = (false, false);
        Ok(())
    }

    /// The gap's next chunk; `None` after its last one. The cutter begins with the gap.
    /// # Errors
    /// `File`; `Damaged` if no record ends within the longest length.
    pub fn next(&mut self, cutter: &mut dyn Cutter) -> Result<Option<Chunk>, ToolError> {
        if self.is_finished {
            return Ok(None);
        }
        loop {
            let wanted = if self.seen < self.buffer.len() { self.buffer.len() } else { self.seen + CHUNK_BYTES };
            self.fill(wanted)?;
            let seen = std::mem::replace(&mut self.seen, self.buffer.len());
            match cutter.advance(&self.buffer[seen..]) {
                Cut::At(end) => return Ok(Some(self.cut(seen + end))),
                Cut::Broken(at) => {
                    // The worker finds the error again, and reports it.
                    self.buffer.truncate(seen + at + SHOWN_BYTES);
                    (self.is_at_end, self.gap_end) = (true, None);
                }
                Cut::None if self.buffer.len() >= RECORD_BYTES_MAX => return Err(self.endless()),
                Cut::None => {}
            }
            if self.is_at_end {
                self.is_finished = true;
                let end = self.buffer.len();
                return Ok(Some(self.cut(end)));
            }
        }
    }

    /// Cuts the first `end` bytes of the buffer off as a chunk.
    fn cut(&mut self, end: usize) -> Chunk {
        let rest = self.buffer.split_off(end);
        let bytes = std::mem::replace(&mut self.buffer, rest);
        self.seen = self.buffer.len();
        let lines = count_lines(&bytes);
        let chunk = Chunk {
            start: self.offset,
            line: self.line,
            lines,
            is_first: self.offset == self.records_start,
            is_last: self.is_finished && self.gap_end.is_none(),
            bytes,
        };
        self.offset = chunk.end();
        self.line += lines;
        chunk
    }

    /// Reads until the buffer has this many bytes, or the gap ends.
    fn fill(&mut self, wanted: usize) -> Result<(), ToolError> {
        let left = self.gap_end.map_or(u64::MAX, |end| end - self.offset - self.buffer.len() as u64);
        let missing = (wanted.saturating_sub(self.buffer.len()) as u64).min(left);
        self.buffer.reserve(missing as usize);
        let read = match &mut self.input {
            Input::File(file) => file.take(missing).read_to_end(&mut self.buffer),
            Input::Stdin(stdin) => stdin.lock().take(missing).read_to_end(&mut self.buffer),
        };
        let read = read.map_err(|cause| ToolError::File { path: self.path.clone(), cause })?;
        self.is_at_end |= (read as u64) < missing || missing == left;
        Ok(())
    }

    fn endless(&self) -> ToolError {
        let found = format!("no record ends within {} bytes: a quote or a brace may not be closed", self.buffer.len());
        ToolError::Damaged { path: self.path.clone(), offset_bytes: self.offset, found }
    }
}

fn count_lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}
