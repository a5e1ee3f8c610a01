//! Buffers that a thread lends to the connection that it serves, so that idle connections need none.

use bunko_wire::Codec;
use std::cell::RefCell;

/// Bytes taken from a socket at once.
const READ_BYTES: usize = 256 * 1024;
/// Maximum number of reply buffers kept for reuse, and the largest size kept.
const BUFFERS_MAX: usize = 16;
const BUFFER_BYTES_MAX: usize = 1 << 20;

thread_local! {
    static SCRATCH: RefCell<Scratch> =
        RefCell::new(Scratch { read: vec![0; READ_BYTES], codec: Codec::new(), replies: Buffers::default() });
}

/// Buffers and contexts of a thread.
pub(crate) struct Scratch {
    /// Receives bytes from sockets.
    pub read: Vec<u8>,
    /// Compression contexts.
    pub codec: Codec,
    /// Buffers for replies.
    pub replies: Buffers,
}

/// Lends the calling thread's scratch. Calls must not nest.
pub(crate) fn with<T>(work: impl FnOnce(&mut Scratch) -> T) -> T {
    SCRATCH.with_borrow_mut(work)
}

/// Buffers kept for reuse.
#[derive(Default)]
pub(crate) struct Buffers(Vec<Vec<u8>>);

impl Buffers {
    /// Takes an empty buffer.
    pub fn take(&mut self) -> Vec<u8> {
        self.0.pop().unwrap_or_default()
    }

    /// Returns a buffer. Large buffers, and buffers beyond the limit, are freed.
    pub fn give(&mut self, mut buffer: Vec<u8>) {
        if self.0.len() < BUFFERS_MAX && buffer.capacity() <= BUFFER_BYTES_MAX {
            buffer.clear();
            self.0.push(buffer);
        }
    }
}
