//! Heap memory of operations: of each one, and of all together.
//!
//! `HeldMemory` counts one operation's bytes by the thread that works for it; `check` compares them with the operation's
//! limit and with the server's budget (`ServerMemory`). `stage_bytes_now` makes sorts and groups spill
//! earlier while little of the budget is left.

use crate::{Draw, Purpose, ServerMemory, StageLimits};
use bunko_errors::{ErrorCode, Failure, Result};
use std::sync::Arc;

/// Fraction of the budget that an operation may hold without a grant. Many operations may wait for grants while each
/// holds that much.
const FREE_PART: u64 = 512;
/// A grant gives this fraction of the budget, but at most `GRANT_BYTES_MAX`: an operation may hold that much whatever
/// the others hold.
const GRANT_PART: u64 = 16;
const GRANT_BYTES_MAX: u64 = 32 << 20;
/// Fraction of the budget that an operation may hold if it gets no grant because it cannot wait.
const SMALL_PART: u64 = 64;
/// Beyond that, an operation may hold at most this many times the memory left for all. So the largest operations are
/// refused first, and some memory stays for new ones.
/// Source: Choudhury and Hahne, "Dynamic Queue Length Thresholds in a Shared Memory ATM Switch".
const PARTS_OF_REST: u64 = 2;
/// Memory limits of operations.
#[derive(Clone, Debug)]
pub struct MemoryLimits {
    /// Limit of one operation, in bytes.
    pub operation_bytes_max: u64,
    /// The server's budget, shared with all other memory held for clients.
    pub server: Arc<ServerMemory>,
    /// Bytes of the budget that were drawn for the operation before it began, and that its connection holds until it
    /// ends: the operation's memory counts only beyond them.
    pub prepaid_bytes: u64,
    /// Limits of its stages, and the place where they spill.
    pub stages: StageLimits,
}

impl MemoryLimits {
    /// No limits except those of stages.
    pub fn none() -> Self {
        let stages = StageLimits::in_memory();
        Self { operation_bytes_max: u64::MAX, server: Arc::default(), prepaid_bytes: 0, stages }
    }
}

/// Memory of one operation. It is measured while a thread works for the operation, and remembered when the thread
/// leaves: a cursor keeps sorted documents between two batches.
#[derive(Debug)]
pub(crate) struct HeldMemory {
    /// As in [`MemoryLimits`].
    server: Arc<ServerMemory>,
    /// As in [`MemoryLimits`].
    operation_bytes_max: u64,
    /// As in [`MemoryLimits`], plus the bytes that were drawn since the operation began.
    prepaid_bytes: u64,
    /// Bytes that this thread had taken when it entered.
    taken_before: i64,
    /// Bytes that the operation held when a thread left it, and bytes that other processes hold for it.
    kept: i64,
    /// Bytes reported to the server: those beyond the bytes drawn for the operation.
    told: i64,
    /// Bytes that the operation holds while its cursor waits for the client. They count only for the share of idle
    /// cursors.
    idle: i64,
    /// The draw of an operation that holds much, kept while a thread works for it. Its memory counts against this draw
    /// first.
    grant: Option<Draw>,
    /// Number of the operation's other draws.
    draws: u32,
}

/// The answer to a memory check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowance {
    Given,
    /// The operation must draw that many bytes first, and may wait for them.
    NeedsGrant(u64),
}

impl HeldMemory {
    pub fn new(server: Arc<ServerMemory>, operation_bytes_max: u64, prepaid_bytes: u64) -> Self {
        let taken_before = bunko_heap::taken_bytes();
        Self {
            server,
            operation_bytes_max,
            prepaid_bytes,
            taken_before,
            kept: 0,
            told: 0,
            idle: 0,
            grant: None,
            draws: 0,
        }
    }

    pub fn enter(&mut self) {
        self.taken_before = bunko_heap::taken_bytes();
        self.end_rest();
    }

    /// Begins the wait of the operation's cursor for the client, until a thread enters again. No thread works for the
    /// operation.
    pub fn rest(&mut self) {
        self.server.tell(-std::mem::take(&mut self.told));
        self.server.note_idle(self.kept - self.idle);
        self.idle = self.kept;
    }

    /// Notes that the cursor is closed: its memory is freed, or soon will be.
    pub fn end_rest(&mut self) {
        self.server.note_idle(-std::mem::take(&mut self.idle));
    }

    /// Bytes that the operation held when a thread last stopped working for it.
    pub fn kept_bytes(&self) -> u64 {
        u64::try_from(self.kept).unwrap_or(0)
    }

    /// Maximum number of bytes that a stage may gather if it can spill: no limit while half of the budget is free.
    pub fn stage_bytes_now(&self) -> u64 {
        let server = &self.server;
        let left = server.left();
        if left >= server.bytes_max() / 2 { u64::MAX } else { (left / 2).max(self.grant_bytes() / 2) }
    }

    pub fn leave(&mut self, given_away_bytes: usize) {
        self.kept = (self.held() - given_away_bytes as i64).max(0);
        // The connection, not the operation, gives back the bytes that it drew.
        self.prepaid_bytes = 0;
        self.enter();
        self.tell(0);
        self.grant = None;
    }

    pub fn server(&self) -> &Arc<ServerMemory> {
        &self.server
    }

    /// Draws bytes that the operation will hold.
    /// # Errors
    /// `ExceededMemoryLimit` if there is no room, or if one operation would hold too much.
    pub fn draw(&mut self, bytes: u64) -> Result<Draw> {
        self.check_own(self.held() as u64 + bytes)?;
        let draw = self.server.draw(bytes, Purpose::Work).ok_or_else(|| {
            let message = format!(
                "operation would hold {bytes} bytes of memory more, and the server holds {} bytes of {} for all clients",
                self.server.held(),
                self.server.bytes_max(),
            );
            Failure::new(ErrorCode::EXCEEDED_MEMORY_LIMIT, message)
        })?;
        self.begin_draw(&draw);
        Ok(draw)
    }

    /// Notes a draw that the operation has made itself.
    pub fn begin_draw(&mut self, draw: &Draw) {
        self.draws += 1;
        self.prepay(draw.bytes());
    }

    /// Notes that the draw is given back.
    pub fn end_draw(&mut self, draw: &Draw) {
        self.draws = self.draws.saturating_sub(1);
        self.end_prepaid(draw.bytes());
    }

    /// Whether the operation may wait for memory. It must hold no draw for work meanwhile: operations before it in the
    /// queue might wait for that draw.
    pub fn may_wait(&self) -> bool {
        self.draws == 0 && self.grant.is_none()
    }

    /// Takes the grant that the operation needed to hold much.
    pub fn grant(&mut self, draw: Draw) {
        self.prepay(draw.bytes());
        self.grant = Some(draw);
        self.tell(0);
    }

    /// Notes that bytes have been drawn for the operation.
    pub fn prepay(&mut self, bytes: u64) {
        self.prepaid_bytes += bytes;
    }

    /// Notes that bytes drawn for the operation are given back.
    pub fn end_prepaid(&mut self, bytes: u64) {
        self.prepaid_bytes = self.prepaid_bytes.saturating_sub(bytes);
        self.tell(0);
    }

    /// Notes bytes that another process holds for the operation, which have already been reported to the server.
    pub fn hold_elsewhere(&mut self, bytes: usize) {
        self.kept += bytes as i64;
    }

    /// Notes that the other process freed the bytes. Called from any thread, also while none works for the operation.
    pub fn let_go_elsewhere(&mut self, bytes: usize) {
        let bytes = bytes as i64;
        self.kept -= bytes;
        let told = bytes.min(self.told);
        self.told -= told;
        self.server.tell(-told);
    }

    fn held(&self) -> i64 {
        (self.kept + bunko_heap::taken_bytes() - self.taken_before).max(0)
    }

    /// Reports the operation's memory to the server, plus `more` bytes that the operation is about to take. Returns the
    /// memory held for all clients.
    fn tell(&mut self, more: i64) -> u64 {
        let told = (self.held() + more - self.prepaid_bytes as i64).max(0);
        let all = self.server.tell(told - self.told);
        self.told = told;
        all
    }

    /// Checks that the operation would not hold more than its own limit.
    /// # Errors
    /// `ExceededMemoryLimit` if one operation would hold too much.
    pub fn check_own(&self, held: u64) -> Result<()> {
        if held <= self.operation_bytes_max {
            return Ok(());
        }
        let message = format!(
            "operation holds too much memory: {held} bytes, and the limit for one operation is {} bytes",
            self.operation_bytes_max
        );
        Err(Failure::new(ErrorCode::EXCEEDED_MEMORY_LIMIT, message))
    }

    /// Checks the operation's memory, plus `more_bytes` that count until the next check.
    /// # Errors
    /// `ExceededMemoryLimit` if the operation, or all memory held for clients, exceeds a limit.
    pub fn check(&mut self, more_bytes: usize, can_wait: bool) -> Result<Allowance> {
        let more = i64::try_from(more_bytes).unwrap_or(i64::MAX / 8);
        let mut checked = self.check_own((self.held() + more) as u64);
        if checked.is_ok() {
            let mut all = self.tell(more);
            if self.is_free() {
                return Ok(Allowance::Given);
            }
            if self.may_wait() {
                match self.draw_grant(more) {
                    Err(needed) if can_wait => return Ok(Allowance::NeedsGrant(needed)),
                    _ => all = self.tell(more),
                }
            }
            checked = self.check_told(more, all);
        }
        if checked.is_err() {
            // The refused operation takes no more memory, so its grant goes to others.
            let granted = self.grant.take().map_or(0, |grant| grant.bytes());
            self.end_prepaid(granted);
        }
        checked.map(|()| Allowance::Given)
    }

    /// Whether the operation holds so little that it needs no grant.
    fn is_free(&self) -> bool {
        self.told <= (self.server.bytes_max() / FREE_PART) as i64
    }

    fn grant_bytes(&self) -> u64 {
        (self.server.bytes_max() / GRANT_PART).min(GRANT_BYTES_MAX)
    }

    /// Draws a grant for an operation that begins to hold much, if there is room now.
    /// # Errors
    /// The number of bytes that the grant needs.
    fn draw_grant(&mut self, more: i64) -> std::result::Result<(), u64> {
        // The draw covers the bytes that the operation is about to take, so they are no longer reported beside it.
        self.tell(0);
        let needed = u64::try_from(more).unwrap_or(0).max(self.grant_bytes());
        let draw = self.server.draw(needed, Purpose::Grant).ok_or(needed)?;
        self.grant(draw);
        Ok(())
    }

    fn check_told(&self, more: i64, all: u64) -> Result<()> {
        let held = self.held() + more;
        let server = &self.server;
        // The largest operations are refused first. Bytes drawn for an operation do not count against it.
        let blamed = u64::try_from(self.told).unwrap_or(0);
        let left = server.limit(Purpose::Work).saturating_sub(all);
        let whatever_is_left = if self.grant.is_some() { 0 } else { server.bytes_max() / SMALL_PART };
        if blamed <= whatever_is_left + PARTS_OF_REST.saturating_mul(left) {
            return Ok(());
        }
        let message = format!(
            "operation holds {held} bytes of memory, and the server {all} bytes for all clients, with a limit of {} bytes",
            server.limit(Purpose::Work)
        );
        Err(Failure::new(ErrorCode::EXCEEDED_MEMORY_LIMIT, message))
    }
}

impl Drop for HeldMemory {
    fn drop(&mut self) {
        self.server.tell(-self.told);
        self.server.note_idle(-self.idle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn limits() -> MemoryLimits {
        MemoryLimits { server: ServerMemory::new(512 * MIB), ..MemoryLimits::none() }
    }

    fn held(limits: &MemoryLimits) -> HeldMemory {
        HeldMemory::new(Arc::clone(&limits.server), limits.operation_bytes_max, limits.prepaid_bytes)
    }

    fn asks(limits: &MemoryLimits, bytes: u64) -> Option<HeldMemory> {
        let mut operation = held(limits);
        operation.check(bytes as usize, false).ok().map(|_| operation)
    }

    /// How many operations of that size are admitted one after the other, while none ends.
    fn let_in(bytes: u64) -> usize {
        let limits = limits();
        let operations: Vec<_> = std::iter::from_fn(|| asks(&limits, bytes)).collect();
        operations.len()
    }

    #[test]
    fn the_largest_are_refused_first_and_something_is_left() {
        assert_eq!((let_in(400 * MIB), let_in(320 * MIB), let_in(100 * MIB)), (0, 1, 4));
        let limits = limits();
        let mut large = asks(&limits, 320 * MIB).expect("alone");
        let mut other = asks(&limits, 100 * MIB).expect("a part of what is left");
        let refused = large.check(420 * MIB as usize, false).expect_err("the larger");
        assert_eq!(refused.code(), ErrorCode::EXCEEDED_MEMORY_LIMIT);
        assert_eq!(limits.server.held(), 100 * MIB, "it was refused and holds nothing");
        other.check(300 * MIB as usize, false).expect("there is more room than before");
        drop((large, other));
        assert_eq!(limits.server.held(), 0);
    }

    #[test]
    fn memory_of_idle_cursors_is_taken_from_no_operation() {
        let limits = limits();
        let mut cursor = held(&limits);
        cursor.kept = 300 * MIB as i64;
        cursor.check(0, false).expect("alone");
        assert_eq!((limits.server.held(), limits.server.idle()), (300 * MIB, 0));
        cursor.leave(0);
        cursor.rest();
        cursor.rest();
        assert_eq!((limits.server.held(), limits.server.idle()), (0, 300 * MIB));
        drop(asks(&limits, 320 * MIB).expect("as if the cursor were not there"));
        cursor.enter();
        cursor.check(0, false).expect("alone");
        assert_eq!((limits.server.held(), limits.server.idle()), (300 * MIB, 0));
        cursor.leave(0);
        cursor.rest();
        drop(cursor);
        assert_eq!((limits.server.held(), limits.server.idle()), (0, 0));
    }

    #[test]
    fn stages_go_on_disk_earlier_where_little_is_left() {
        let limits = limits();
        let stage = asks(&limits, 200 * MIB).expect("alone");
        assert_eq!(stage.stage_bytes_now(), u64::MAX);
        let others: Vec<_> = std::iter::from_fn(|| asks(&limits, 9 * MIB)).collect();
        assert!(!others.is_empty());
        assert_eq!(stage.stage_bytes_now(), 16 * MIB);
    }

    #[test]
    fn an_operation_that_begins_to_hold_much_draws_first_and_may_wait() {
        let limits = limits();
        let waits =
            |operation: &mut HeldMemory, bytes: u64| operation.check(bytes as usize, true).expect("it may wait");
        let holding = |kept| {
            let mut operation = held(&limits);
            operation.kept = kept;
            operation
        };
        let mut small: Vec<_> = (0..256).map(|_| holding(MIB as i64)).collect();
        assert!(small.iter_mut().all(|operation| waits(operation, 0) == Allowance::Given), "each holds little");
        assert_eq!(limits.server.held(), 256 * MIB);
        let grants: Vec<_> = small.iter_mut().map(|operation| waits(operation, MIB)).collect();
        let granted = grants.iter().filter(|grant| **grant == Allowance::Given).count();
        assert!((2..10).contains(&granted), "{granted} go on");
        assert_eq!(grants.last(), Some(&Allowance::NeedsGrant(32 * MIB)));
        assert!(limits.server.held() <= limits.server.limit(Purpose::Work), "those that wait hold no more than before");
        drop(small);
        let mut waiting = holding(0);
        assert_eq!(waits(&mut waiting, 100 * MIB), Allowance::Given);
        assert_eq!(limits.server.held(), 100 * MIB, "what was drawn counts once");
        waiting.leave(0);
        assert_eq!(limits.server.held(), 0);
    }
}
