//! What open transactions hold in memory, each and all together.

use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::{Purpose, ServerMemory};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// What the changes of one transaction may take in memory, in bytes, unless something else is said.
pub const TRANSACTION_BYTES_MAX: u64 = 256 << 20;

/// How long a transaction waits for a change of a collection, in milliseconds, unless something else is said.
/// Source: MongoDB manual, parameter `maxTransactionLockRequestTimeoutMillis`.
const LOCK_REQUEST_MS_MAX: i32 = 5;

/// The limits, and what is held.
#[derive(Debug)]
pub struct TransactionMemory {
    lock_request_ms_max: AtomicI32,
    one_bytes_max: AtomicU64,
    all_bytes_max: AtomicU64,
    held_bytes: AtomicU64,
    /// The server's budget, of which they are a part.
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
    /// How long a transaction waits for a change of a collection, in milliseconds; below zero without a limit.
    pub fn lock_request_ms_max(&self) -> i32 {
        self.lock_request_ms_max.load(Ordering::Relaxed)
    }

    /// Sets it.
    pub fn set_lock_request_ms_max(&self, milliseconds: i32) {
        self.lock_request_ms_max.store(milliseconds, Ordering::Relaxed);
    }

    /// What one transaction may hold, in bytes.
    pub fn one_bytes_max(&self) -> u64 {
        self.one_bytes_max.load(Ordering::Relaxed)
    }

    /// Lets one transaction hold that much, in bytes.
    pub fn set_one_bytes_max(&self, bytes_max: u64) {
        self.one_bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// Lets all transactions hold that much together, in bytes.
    pub fn set_all_bytes_max(&self, bytes_max: u64) {
        self.all_bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// Counts the memory of transactions as a part of the server's budget. The first call counts.
    pub fn count_in(&self, server: &Arc<ServerMemory>) {
        let _ = self.server.set(Arc::clone(server));
    }

    /// What all transactions hold, in bytes.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes.load(Ordering::Relaxed)
    }

    /// Asks whether a transaction that holds `held` bytes may hold `bytes`.
    /// # Errors
    /// `TransactionTooLarge` where it is too much for one, `ExceededMemoryLimit` where it is too much for all together.
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
        let more = bytes.saturating_sub(held);
        if let Some(server) = self.server.get().filter(|server| server.held() + more > server.limit(Purpose::Work)) {
            let (held, max) = (server.held(), server.limit(Purpose::Work));
            let message = format!("the server holds {held} bytes of memory for its clients, and the limit is {max}");
            return Err(Failure::new(ErrorCode::EXCEEDED_MEMORY_LIMIT, message));
        }
        Ok(())
    }

    /// Notes that a transaction that held `before` bytes holds `after`.
    pub(super) fn tell(&self, before: u64, after: u64) {
        self.held_bytes.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
        if let Some(server) = self.server.get() {
            server.tell(after as i64 - before as i64);
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
    fn they_are_a_part_of_what_the_server_holds() {
        let (memory, server) = (TransactionMemory::default(), ServerMemory::new(1600));
        memory.count_in(&server);
        memory.tell(0, 1000);
        assert_eq!(server.held(), 1000);
        let code = |held, bytes| memory.check(held, bytes).err().map(|failure| failure.code());
        assert_eq!([code(0, 500), code(0, 501)], [None, Some(ErrorCode::EXCEEDED_MEMORY_LIMIT)]);
        memory.tell(1000, 0);
        assert_eq!(server.held(), 0);
    }
}
