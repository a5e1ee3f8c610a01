//! An input, and the part of it that was read but not used.

use std::io::{self, BufRead, Read};

/// How much is read at once, in bytes: small enough to stay in a core's cache until it is used.
const READ_BYTES: usize = 256 * 1024;

/// A buffered input that can be looked into as far as a frame reaches.
pub(super) struct Window {
    input: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    /// What is read but not used is `buffer[start..end]`.
    start: usize,
    end: usize,
    /// How many bytes were used.
    offset: u64,
    ended: bool,
}

impl Window {
    pub(super) fn new(input: Box<dyn Read + Send>) -> Self {
        Self { input, buffer: vec![0; READ_BYTES], start: 0, end: 0, offset: 0, ended: false }
    }

    /// How many bytes of the input were used.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// What was read but not used.
    pub(super) fn available(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// What was read but not used: at least `bytes`, unless the input ends before. Room grows with what is there, so a
    /// lying length costs nothing.
    pub(super) fn require(&mut self, bytes: usize) -> io::Result<&[u8]> {
        while self.end - self.start < bytes && !self.ended {
            self.read_more()?;
        }
        Ok(self.available())
    }

    /// Whether the input has no more bytes than [`Self::available`].
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
        // What is wanted in large pieces need not pass through the buffer.
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
