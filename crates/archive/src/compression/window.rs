//! An input, and its bytes that were read but not consumed.

use std::io::{self, BufRead, Read};

/// Length of one read, in bytes: small enough to stay in a core's cache until it is decoded.
const READ_BYTES: usize = 256 * 1024;

/// A buffered input that can be inspected as far as a frame reaches.
pub(super) struct Window {
    input: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    /// Bytes that were read but not consumed are `buffer[start..end]`.
    start: usize,
    end: usize,
    /// Number of consumed bytes.
    offset: u64,
    ended: bool,
}

impl Window {
    pub(super) fn new(input: Box<dyn Read + Send>) -> Self {
        Self { input, buffer: vec![0; READ_BYTES], start: 0, end: 0, offset: 0, ended: false }
    }

    /// Number of consumed bytes of the input.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes that were read but not consumed.
    pub(super) fn available(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Bytes that were read but not consumed: at least `bytes`, unless the input ends before. The buffer grows with the
    /// bytes that are read, so a wrong length costs nothing.
    pub(super) fn require(&mut self, bytes: usize) -> io::Result<&[u8]> {
        while self.end - self.start < bytes && !self.ended {
            self.read_more()?;
        }
        Ok(self.available())
    }

    /// Whether the input has ended, so that only [`Self::available`] is left.
    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    fn read_more(&mut self) -> io::Result<()> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.buffer.len() - self.end < READ_BYTES / 2 {
            self.buffer.resize(self.end * 2, 0);
        }
        match self.input.read(&mut self.buffer[self.end..]) {
            Ok(0) => self.ended = true,
            Ok(length) => self.end += length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl Read for Window {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // Large reads bypass the buffer.
        if self.start == self.end && into.len() >= READ_BYTES && !self.ended {
            let length = self.input.read(into)?;
            self.offset += length as u64;
            return Ok(length);
        }
        let available = self.fill_buf()?;
        let length = available.len().min(into.len());
        into[..length].copy_from_slice(&available[..length]);
        self.consume(length);
        Ok(length)
    }
}

impl BufRead for Window {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.require(1)
    }

    fn consume(&mut self, bytes: usize) {
        self.start = (self.start + bytes).min(self.end);
        self.offset += bytes as u64;
    }
}
