//! Buffers for documents between source and server, and the limit on their bytes.

use bunko_archive::Documents;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of bytes of documents between the source and the server's acknowledgement. Each reader may exceed it
/// by one document of 16 MiB.
pub(super) const LENT_BYTES_MAX: usize = 96 * 1024 * 1024;
/// How often a thread that waits for a buffer checks whether the run is over.
const LOOK_UP: Duration = Duration::from_millis(100);

/// Lends buffers and takes them back.
pub(super) struct Pool {
    state: Mutex<LentBuffers>,
    returned: Condvar,
    /// Expected length of a lent buffer's contents.
    buffer_bytes: usize,
}

#[derive(Default)]
struct LentBuffers {
    free: Vec<Vec<u8>>,
    lent_bytes: usize,
}

impl Pool {
    pub(super) fn new(buffer_bytes: usize) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), returned: Condvar::new(), buffer_bytes })
    }

    /// Waits for a buffer; `None` once `is_over` says that no more buffers are needed.
    pub(super) fn lend(self: &Arc<Self>, is_over: impl Fn() -> bool) -> Option<Loan> {
        let mut state = self.state.lock();
        while state.lent_bytes + self.buffer_bytes > LENT_BYTES_MAX {
            if is_over() {
                return None;
            }
            self.returned.wait_for(&mut state, LOOK_UP);
        }
        state.lent_bytes += self.buffer_bytes;
        let bytes = state.free.pop().unwrap_or_else(|| Vec::with_capacity(self.buffer_bytes));
        Some(Loan {
            documents: Documents { bytes, count: 0 },
            charged_bytes: self.buffer_bytes,
            pool: Arc::clone(self),
        })
    }
}

/// A buffer and its documents; it returns to its pool when dropped.
pub(super) struct Loan {
    documents: Documents,
    charged_bytes: usize,
    pool: Arc<Pool>,
}

impl Loan {
    /// Takes the buffer out, for a reader that returns it as [`Documents`].
    pub(super) fn take_buffer(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.documents.bytes)
    }

    /// Puts the buffer back, filled.
    pub(super) fn fill(&mut self, documents: Documents) {
        // A single document may be longer than a buffer.
        let more = documents.bytes.len().saturating_sub(self.charged_bytes);
        if more > 0 {
            self.charged_bytes += more;
            self.pool.state.lock().lent_bytes += more;
        }
        self.documents = documents;
    }

    pub(super) fn documents(&self) -> &Documents {
        &self.documents
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        let bytes = self.take_buffer();
        let mut state = self.pool.state.lock();
        state.lent_bytes -= self.charged_bytes;
        // A buffer that an oversized document enlarged is freed.
        if bytes.capacity() > 0 && bytes.capacity() <= 2 * self.pool.buffer_bytes {
            state.free.push(bytes);
        }
        self.pool.returned.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lent_buffers_are_bounded_and_come_back() {
        let pool = Pool::new(LENT_BYTES_MAX / 2);
        let first = pool.lend(|| true).expect("room for two");
        let mut second = pool.lend(|| true).expect("room for two");
        assert!(pool.lend(|| true).is_none());
        second.fill(Documents { bytes: vec![0; LENT_BYTES_MAX], count: 1 });
        drop(first);
        assert!(pool.lend(|| true).is_none(), "the long document takes the room of two");
        drop(second);
        assert!(pool.lend(|| true).is_some());
        assert_eq!(pool.state.lock().lent_bytes, 0);
    }
}
