//! Cursors go where what they keep of states that are over takes too much room.
//!
//! A cursor that waits reads the state in which it was opened, and engines keep that for it: nobody else's writes may
//! fail for it, and no disk fill up. MongoDB's cursors see what is there when they go on, so they keep nothing, and its
//! clients know a cursor that is gone.

use crate::cursor_store::CursorStore;
use crate::service::Service;
use bunko_store::{KeptForViews, Lsn};

/// The part of the cursors that is closed before it is asked again whether that is enough.
const CLOSED_PART: usize = 8;

impl Service {
    /// Closes waiting cursors, those of the oldest states first, until what engines keep for snapshots alone is within its
    /// limits. Call it every few seconds, on a thread that may be held for a moment.
    pub fn close_cursors_that_keep_too_much(&self) {
        if self.cursors.is_empty() {
            return;
        }
        let limit = self.parameters.kept_for_cursors_max();
        let is_too_much = |kept: &KeptForViews| kept.bytes > limit.unwrap_or(kept.bytes_max);
        loop {
            let kept = self.catalog.store().kept_for_snapshots();
            let Some((engine, kept)) = kept.into_iter().find(|(_, kept)| is_too_much(kept)) else { return };
            let closed = self.cursors.close_oldest();
            if closed == 0 {
                return;
            }
            tracing::warn!(target: "QUERY", engine, place = ?kept.place, keptBytes = kept.bytes, maxBytes = limit.unwrap_or(kept.bytes_max), closed, "Closed idle cursors: what was replaced and is kept for them takes too much");
        }
    }
}

impl CursorStore {
    /// Closes a part of the waiting cursors that read states which are over, the oldest states first; how many. Those of
    /// transactions stay: theirs is kept for as long as the transaction is open.
    fn close_oldest(&self) -> usize {
        let mut waiting: Vec<(Lsn, i64)> = Vec::new();
        self.for_each_waiting(|id, cursor| {
            let lsn = cursor.source.snapshot().filter(|_| cursor.transaction.is_none());
            waiting.extend(lsn.map(|lsn| (lsn, id)));
        });
        waiting.sort_unstable();
        waiting.truncate(waiting.len().div_ceil(CLOSED_PART));
        self.close_for_room(waiting.into_iter().map(|(_, id)| id))
    }
}
