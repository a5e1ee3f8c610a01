//! Waiting cursors together hold at most a share of the server's memory.
//!
//! ```text
//!   batch sent ── within the share ─────────────────────► waits in memory
//!       └─ share used up ── read ahead onto disk ───────► waits on disk
//!                               └─ share still used up ─► the cursor that holds most is ended
//! ```
//!
//! A new operation is never refused because of memory that waiting cursors hold.

use super::spooled::spooled;
use super::store::CursorStore;
use bunko_catalog::Namespace;
use bunko_operation::{OperationContext, RunOn, ServerMemory};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A cursor that holds less than this many bytes is left alone: reading it from disk would take as much memory.
const SMALL_BYTES: u64 = 64 * 1024;
/// Longest time that a cursor is read ahead, also on a thread that serves other connections: substitutes start if that
/// thread is held up. A cursor that is read only in part still holds its memory, so stopping early would free nothing.
const READ_AHEAD: Duration = Duration::from_secs(5);

/// A waiting cursor and the memory that it holds.
struct Held {
    id: i64,
    bytes: u64,
    namespace: Namespace,
}

impl CursorStore {
    /// Lets a cursor wait that a command has left open. The thread has left the command's `operation`, which has time
    /// until `deadline`.
    pub fn let_wait(
        &self,
        id: i64,
        operation: &Arc<OperationContext>,
        deadline: impl FnOnce() -> Option<Instant>,
        memory: &ServerMemory,
    ) {
        operation.rest();
        let is_share_used_up = || memory.idle() > memory.idle_max();
        if !is_share_used_up() {
            return;
        }
        if operation.kept_bytes() > SMALL_BYTES
            && let Some(mut cursor) = self.take_to_spool(id)
        {
            let clock = operation.clock();
            let now = clock.now();
            // Reading ahead takes half of the command's time at most; the client gets the other half.
            let left = deadline().map(|deadline| deadline.saturating_duration_since(now) / 2);
            operation.enter(RunOn::OwnThread, now);
            cursor.source =
                spooled(cursor.source, operation, now + left.map_or(READ_AHEAD, |left| left.min(READ_AHEAD)));
            cursor.time_left = cursor.time_left.map(|left| left.saturating_sub(clock.since(now)));
            operation.leave(0);
            if self.put_back(id, cursor, clock.now()) {
                operation.rest();
            }
        }
        while is_share_used_up() {
            let Some(Held { id, bytes, namespace }) = self.end_largest(SMALL_BYTES) else { return };
            tracing::warn!(target: "QUERY", id = 145, cursorId = id, ns = %namespace, heldBytes = bytes, maxBytes = memory.idle_max(), "Ended the idle cursor that holds most memory: idle cursors together hold more than their share");
        }
    }

    /// Ends the waiting cursor that holds the most memory, if that is more than `least` bytes. Returns the cursor.
    fn end_largest(&self, least: u64) -> Option<Held> {
        let mut largest: Option<Held> = None;
        self.for_each_waiting(|id, cursor| {
            let bytes = cursor.context.operation().kept_bytes();
            if bytes > least && largest.as_ref().is_none_or(|largest| bytes > largest.bytes) {
                largest = Some(Held { id, bytes, namespace: cursor.namespace.clone() });
            }
        });
        largest.filter(|largest| self.end_for_memory(largest.id))
    }
}
