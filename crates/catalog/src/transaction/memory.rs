//! Memory held by open transactions: limits for each and for all together.

use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::{Purpose, ServerMemory};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Default limit for the changes of one transaction in memory, in bytes.
pub const TRANSACTION_BYTES_MAX: u64 = 256 << 20;

/// Default time that a transaction waits for a change of a collection, in milliseconds.
/// Source: MongoDB manual, parameter `maxTransactionLockRequestTimeoutMillis`.
const LOCK_REQUEST_MS_MAX: i32 = 5;

/// Times that the server's memory counts a change: the change itself, and the copy that the commit makes of it for the
/// log. The copy is counted from the start, so a commit neither waits for memory nor fails for lack of it.
const COUNTED_TIMES: u64 = 2;

/// The limits, and the bytes held.
#[derive(Debug)]
pub struct TransactionMemory {
    lock_request_ms_max: AtomicI32,
    one_bytes_max: AtomicU64,
    all_bytes_max: AtomicU64,
    held_bytes: AtomicU64,
    /// The server's memory budget, which includes the transactions' memory.
    server: OnceLock<Arc<ServerMemory>>,
}

impl Default for TransactionMemory {
    fn default() -> Self {
        Self {
            lock_request_ms_max: AtomicI32::new(LOCK_REQUEST_MS_MAX),
            one_bytes_max: AtomicU64::new(TRANSACTION_BYTES_MAX),
            all_bytes_max: AtomicU64::new(u64::MAX),
            held_bytes: AtomicU64::new(0),
            server: OnceLock::new(),
        }
    }
}

impl TransactionMemory {
    /// How long a transaction waits for a change of a collection, in milliseconds; a negative value means without a
    /// limit.
    pub fn lock_request_ms_max(&self) -> i32 {
        self.lock_request_ms_max.load(Ordering::Relaxed)
    }

    /// Sets [`Self::lock_request_ms_max`].
    pub fn set_lock_request_ms_max(&self, milliseconds: i32) {
        self.lock_request_ms_max.store(milliseconds, Ordering::Relaxed);
    }

    /// Limit for one transaction, in bytes.
    pub fn one_bytes_max(&self) -> u64 {
        self.one_bytes_max.load(Ordering::Relaxed)
    }

    /// Sets the limit for one transaction, in bytes.
    pub fn set_one_bytes_max(&self, bytes_max: u64) {
        self.one_bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// Sets the limit for all transactions together, in bytes.
    pub fn set_all_bytes_max(&self, bytes_max: u64) {
        self.all_bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// Counts the transactions' memory as part of the server's budget. Only the first call has an effect.
    pub fn count_in(&self, server: &Arc<ServerMemory>) {
        let _ = self.server.set(Arc::clone(server));
    }

    /// Memory held by all transactions, in bytes.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes.load(Ordering::Relaxed)
    }

    /// Checks whether a transaction that holds `held` bytes may hold `bytes`.
    /// # Errors
    /// `TransactionTooLarge` above the limit for one transaction; `ExceededMemoryLimit` above the limit for all
    /// together, or above the server's.
    pub(super) fn check(&self, held: u64, bytes: u64) -> Result<()> {
        let one_max = self.one_bytes_max();
        if bytes > one_max {
            let message = format!(
                "Total size of all transaction operations must be less than {one_max} (transactionMemoryLimitBytes). \
                 Actual size is {bytes}"
            );
            return Err(Failure::new(ErrorCode::TRANSACTION_TOO_LARGE, message));
        }
        let all = self.held_bytes().saturating_add(bytes.saturating_sub(held));
        let all_max = self.all_bytes_max.load(Ordering::Relaxed);
        if all > all_max {
            let message =
                format!("all open transactions together would hold {all} bytes of memory, and the limit is {all_max}");
            return Err(Failure::new(ErrorCode::EXCEEDED_MEMORY_LIMIT, message));
        }
        let more = bytes.saturating_sub(held) * COUNTED_TIMES;
        if let Some(server) = self.server.get().filter(|server| server.held() + more > server.limit(Purpose::Work)) {
            let (held, max) = (server.held(), server.limit(Purpose::Work));
            let message = format!("the server holds {held} bytes of memory for its clients, and the limit is {max}");
            return Err(Failure::new(ErrorCode::EXCEEDED_MEMORY_LIMIT, message));
        }
        Ok(())
    }

    /// Notes that a transaction which held `before` bytes now holds `after`.
    pub(super) fn tell(&self, before: u64, after: u64) {
        self.held_bytes.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
        if let Some(server) = self.server.get() {
            server.tell((after as i64 - before as i64) * COUNTED_TIMES as i64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_limited_and_so_are_all_together() {
        let memory = TransactionMemory::default();
        memory.set_one_bytes_max(100);
        memory.set_all_bytes_max(150);
        let code = |held, bytes| memory.check(held, bytes).err().map(|failure| failure.code());
        assert_eq!([code(0, 100), code(0, 101)], [None, Some(ErrorCode::TRANSACTION_TOO_LARGE)]);
        memory.tell(0, 90);
        assert_eq!([code(0, 60), code(0, 61)], [None, Some(ErrorCode::EXCEEDED_MEMORY_LIMIT)]);
        assert_eq!(code(90, 100), None, "its own is not counted twice");
        memory.tell(90, 0);
        assert_eq!(memory.held_bytes(), 0);
    }

    #[test]
    fn the_server_counts_them_with_the_copies_of_their_commits() {
        let (memory, server) = (TransactionMemory::default(), ServerMemory::new(3200));
        memory.count_in(&server);
        memory.tell(0, 1000);
        assert_eq!((memory.held_bytes(), server.held()), (1000, 2000));
        let code = |held, bytes| memory.check(held, bytes).err().map(|failure| failure.code());
        assert_eq!([code(0, 500), code(0, 501)], [None, Some(ErrorCode::EXCEEDED_MEMORY_LIMIT)]);
        memory.tell(1000, 0);
        assert_eq!(server.held(), 0);
    }
}
