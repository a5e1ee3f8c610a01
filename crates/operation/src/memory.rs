//! What operations hold of the heap, each and all together.

use crate::{Draw, Purpose, ServerMemory, StageLimits};
use bunko_errors::{ErrorCode, Failure, Result};
use std::sync::Arc;

/// How much memory operations may hold.
#[derive(Clone, Debug)]
pub struct MemoryLimits {
    /// One operation, in bytes.
    pub operation_bytes_max: u64,
    /// The server's budget, which all of them share with all else that is held for clients.
    pub server: Arc<ServerMemory>,
    /// Bytes of the budget that were drawn for the operation before it began, and that its connection holds until it has
    /// ended: so much of what it takes is counted already.
    pub prepaid_bytes: u64,
    /// What each of their stages may gather, and where it goes beyond that.
    pub stages: StageLimits,
}

impl MemoryLimits {
    /// No limit but those of stages.
    pub fn none() -> Self {
        let stages = StageLimits::in_memory();
        Self { operation_bytes_max: u64::MAX, server: Arc::default(), prepaid_bytes: 0, stages }
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
    /// What the server has been told: what it holds beyond what was drawn for it.
    told: i64,
    /// The part of what it holds that is the reply it writes.
    reply: i64,
}

impl HeldMemory {
    pub fn new(limits: MemoryLimits) -> Self {
        Self { limits, taken_before: bunko_heap::taken_bytes(), kept: 0, told: 0, reply: 0 }
    }

    pub fn enter(&mut self) {
        self.taken_before = bunko_heap::taken_bytes();
    }

    pub fn leave(&mut self, given_away_bytes: usize) {
        self.kept = (self.held() - given_away_bytes as i64).max(0);
        // The connection gives back what it drew.
        self.limits.prepaid_bytes = 0;
        self.reply = 0;
        self.enter();
        self.tell();
    }

    pub fn server(&self) -> &Arc<ServerMemory> {
        &self.limits.server
    }

    /// Notes how much of what it holds is the reply that it writes.
    pub fn note_reply(&mut self, bytes: usize) {
        self.reply = bytes as i64;
    }

    /// Draws so many bytes, which it will hold.
    /// # Errors
    /// `ExceededMemoryLimit` where there is no room, or where it would be too much for one operation.
    pub fn draw(&mut self, bytes: u64) -> Result<Draw> {
        self.check_own(self.held() as u64 + bytes)?;
        let draw = self.limits.server.draw(bytes, Purpose::Work).ok_or_else(|| {
            let message = format!(
                "operation would hold {bytes} bytes of memory more, and the server holds {} bytes of {} for all clients",
                self.limits.server.held(),
                self.limits.server.bytes_max(),
            );
            Failure::new(ErrorCode::EXCEEDED_MEMORY_LIMIT, message)
        })?;
        self.prepay(draw.bytes());
        Ok(draw)
    }

    /// Notes that so many bytes have been drawn for it.
    pub fn prepay(&mut self, bytes: u64) {
        self.limits.prepaid_bytes += bytes;
    }

    /// Notes that they are given back.
    pub fn end_prepaid(&mut self, bytes: u64) {
        self.limits.prepaid_bytes = self.limits.prepaid_bytes.saturating_sub(bytes);
        self.tell();
    }

    fn held(&self) -> i64 {
        (self.kept + bunko_heap::taken_bytes() - self.taken_before).max(0)
    }

    fn tell(&mut self) -> u64 {
        let told = (self.held() - self.limits.prepaid_bytes as i64).max(0);
        let all = self.limits.server.tell(told - self.told);
        self.told = told;
        all
    }

    /// # Errors
    /// `ExceededMemoryLimit` where one operation would hold too much.
    pub fn check_own(&self, held: u64) -> Result<()> {
        if held <= self.limits.operation_bytes_max {
            return Ok(());
        }
        let message = format!(
            "operation holds too much memory: {held} bytes, and the limit for one operation is {} bytes",
            self.limits.operation_bytes_max
        );
        Err(Failure::new(ErrorCode::EXCEEDED_MEMORY_LIMIT, message))
    }

    /// # Errors
    /// `ExceededMemoryLimit` where the operation, or all that is held for clients, is more than it may be.
    pub fn check(&mut self) -> Result<()> {
        let all = self.tell();
        let held = self.held();
        self.check_own(held as u64)?;
        let server = &self.limits.server;
        // Small operations go on: the large ones are to blame, and will be asked too. A reply counts for neither: its batch ends
        // early where memory is short.
        let blamed = self.told.min(held - self.reply);
        if all > server.limit(Purpose::Work) && blamed > (server.bytes_max() / 64) as i64 {
            let message = format!(
                "operation holds {held} bytes of memory, and the server {all} bytes for all clients, more than its limit of {} bytes",
                server.limit(Purpose::Work)
            );
            return Err(Failure::new(ErrorCode::EXCEEDED_MEMORY_LIMIT, message));
        }
        Ok(())
    }
}

impl Drop for HeldMemory {
    fn drop(&mut self) {
        self.limits.server.tell(-self.told);
    }
}
