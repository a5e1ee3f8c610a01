//! What operations hold of the heap, each and all together.

use crate::StageLimits;
use bunko_errors::{ErrorCode, Failure, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// What all operations of one server hold together, in bytes.
#[derive(Debug, Default)]
pub struct ServerMemory(AtomicI64);

/// How much memory operations may hold.
#[derive(Clone, Debug)]
pub struct MemoryLimits {
    /// One operation, in bytes.
    pub operation_bytes_max: u64,
    /// All of them together, in bytes.
    pub server_bytes_max: u64,
    /// What all of them hold.
    pub server: Arc<ServerMemory>,
    /// What each of their stages may gather, and where it goes beyond that.
    pub stages: StageLimits,
}

impl MemoryLimits {
    /// No limit but those of stages.
    pub fn none() -> Self {
        let stages = StageLimits::in_memory();
        Self { operation_bytes_max: u64::MAX, server_bytes_max: u64::MAX, server: Arc::default(), stages }
    }
}

/// What one operation holds. It is measured from when a thread begins to work for it until the thread leaves it, and
/// what it held then is remembered: a cursor keeps its sorted documents between two batches.
#[derive(Debug)]
pub(crate) struct HeldMemory {
    limits: MemoryLimits,
    /// What this thread had taken when it began.
    taken_before: i64,
    /// What the operation held when a thread left it.
    kept: i64,
    /// What the server has been told.
    told: i64,
}

impl HeldMemory {
    pub fn new(limits: MemoryLimits) -> Self {
        Self { limits, taken_before: bunko_heap::taken_bytes(), kept: 0, told: 0 }
    }

    pub fn enter(&mut self) {
        self.taken_before = bunko_heap::taken_bytes();
    }

    pub fn leave(&mut self, given_away_bytes: usize) {
        self.kept = (self.held() - given_away_bytes as i64).max(0);
        self.enter();
        self.tell();
    }

    fn held(&self) -> i64 {
        (self.kept + bunko_heap::taken_bytes() - self.taken_before).max(0)
    }

    fn tell(&mut self) -> i64 {
        let held = self.held();
        let all = self.limits.server.0.fetch_add(held - self.told, Ordering::Relaxed) + held - self.told;
        self.told = held;
        all
    }

    /// # Errors
    /// `ExceededMemoryLimit` where the operation, or all together, hold more than they may.
    pub fn check(&mut self) -> Result<()> {
        let all = u64::try_from(self.tell()).unwrap_or(0);
        let held = self.told as u64;
        if held > self.limits.operation_bytes_max {
            let message = format!(
                "operation holds too much memory: {held} bytes, and the limit for one operation is {} bytes",
                self.limits.operation_bytes_max
            );
            return Err(Failure::new(ErrorCode::EXCEEDED_MEMORY_LIMIT, message));
        }
        // Small ones go on: the large ones are to blame, and will be asked too.
        if all > self.limits.server_bytes_max && held > self.limits.server_bytes_max / 64 {
            let message = format!(
                "operation holds {held} bytes of memory, and all operations together {all} bytes, more than the server's \
                 limit of {} bytes",
                self.limits.server_bytes_max
            );
            return Err(Failure::new(ErrorCode::EXCEEDED_MEMORY_LIMIT, message));
        }
        Ok(())
    }
}

impl Drop for HeldMemory {
    fn drop(&mut self) {
        self.limits.server.0.fetch_sub(self.told, Ordering::Relaxed);
    }
}
