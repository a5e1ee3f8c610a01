//! Bytes of a connection that are not yet a whole frame.

use bunko_wire::needed_bytes;

/// Largest capacity that an idle connection keeps.
const KEPT_BYTES_MAX: usize = 16 * 1024;
/// Most bytes reserved ahead for a frame whose claimed length has not arrived.
const AHEAD_BYTES_MAX: usize = 1 << 20;

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

    /// The memory that they take.
    pub fn held_bytes(&self) -> usize {
        self.partial.capacity()
    }

    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.partial)
    }

    /// Puts back what a pass over `take`n bytes left over.
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

    /// Room for the rest of a frame that is known to be long, to read straight into; `None` where it is short or
    /// complete.
    pub fn room(&mut self, at_least: usize) -> Option<&mut Vec<u8>> {
        let missing = needed_bytes(&self.partial)?.checked_sub(self.partial.len())?;
        if missing < at_least {
            return None;
        }
        // Memory follows what was really sent: a thousand headers that promise 48 MB each must not take a gigabyte.
        self.partial.reserve(missing.min(self.partial.len().clamp(at_least, AHEAD_BYTES_MAX)));
        Some(&mut self.partial)
    }

    /// Whether a whole frame is there.
    pub fn has_frame(&self) -> bool {
        needed_bytes(&self.partial).is_some_and(|needed| needed <= self.partial.len())
    }
}
