//! Bytes of a connection that are not yet a whole frame.

use bunko_wire::{Header, needed_bytes, split_frame};

/// Largest capacity that an idle connection keeps.
const KEPT_BYTES_MAX: usize = 16 * 1024;

/// Usually empty: most frames arrive whole and are read where they landed.
#[derive(Default)]
pub(crate) struct Input {
    partial: Vec<u8>,
}

impl Input {
    pub fn is_empty(&self) -> bool {
        self.partial.is_empty()
    }

    pub fn bytes(&self) -> &[u8] {
        &self.partial
    }

    /// The memory that the bytes take.
    pub fn held_bytes(&self) -> usize {
        self.partial.capacity()
    }

    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.partial)
    }

    /// Puts back the bytes of `take` that a pass did not consume.
    pub fn restore(&mut self, mut bytes: Vec<u8>, consumed: usize) {
        debug_assert!(self.partial.is_empty());
        bytes.drain(..consumed);
        if bytes.is_empty() && bytes.capacity() > KEPT_BYTES_MAX {
            bytes = Vec::new();
        }
        self.partial = bytes;
    }

    /// Keeps bytes for later.
    pub fn append(&mut self, bytes: &[u8]) {
        self.partial.extend_from_slice(bytes);
    }

    /// How many bytes the frame is short of, where its length has come.
    pub fn missing_bytes(&self) -> Option<usize> {
        Some(needed_bytes(&self.partial)?.saturating_sub(self.partial.len()))
    }

    /// Room for the rest of the frame and for nothing after it, to read straight into.
    pub fn rest(&mut self) -> &mut Vec<u8> {
        let missing = self.missing_bytes().unwrap_or(0);
        self.partial.reserve_exact(missing);
        &mut self.partial
    }

    /// Frees the part of the buffer that is empty.
    pub fn shrink(&mut self) {
        self.partial.shrink_to_fit();
    }

    /// Whether a whole frame is there.
    pub fn has_frame(&self) -> bool {
        self.missing_bytes() == Some(0)
    }

    /// Takes the frame out of the buffer, if it is longer than `bytes` and no other bytes follow it: such a frame is
    /// handed on without a copy.
    pub fn take_long_frame(&mut self, bytes: usize) -> Option<(Header, Vec<u8>)> {
        if self.partial.len() <= bytes || needed_bytes(&self.partial) != Some(self.partial.len()) {
            return None;
        }
        let (header, _, _) = split_frame(&self.partial, self.partial.len()).ok().flatten()?;
        Some((header, self.take()))
    }
}
