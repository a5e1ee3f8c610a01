//! Cursors go where what they keep of states that are over takes too much room.
//!
//! A cursor that waits reads the state in which it was opened, and engines keep that for it: nobody else's writes may
//! fail for it, and no disk fill up. MongoDB's cursors see what is there when they go on, so they keep nothing, and its
//! clients know a cursor that is gone.

use crate::cursor_store::CursorStore;
use crate::service::Service;
use bunko_store::{KeptForViews, Lsn, Place};

/// The part of the cursors that is closed before it is asked again whether that is enough.
const CLOSED_PART: usize = 8;

impl Service {
    /// Closes waiting cursors, those of the oldest states first, until what engines keep for snapshots alone is within its
    /// limits. Call it every few seconds, on a thread that may be held for a moment.
    pub fn close_cursors_that_keep_too_much(&self) {
        let past = self.catalog.past_states();
        if self.cursors.is_empty() && past.kept() == 0 {
            return;
        }
        let limit = self.parameters.kept_for_cursors_max();
        let is_too_much = |kept: &KeptForViews| kept.bytes > limit.unwrap_or(kept.bytes_max);
        loop {
            let kept = self.catalog.store().kept_for_snapshots();
            let Some((engine, kept)) = kept.into_iter().find(|(_, kept)| is_too_much(kept)) else { return };
            // First the states that nobody waits to see the rest of.
            let forgotten = past.forget_oldest();
            if forgotten > 0 {
                tracing::warn!(target: "QUERY", engine, place = ?kept.place, keptBytes = kept.bytes, maxBytes = limit.unwrap_or(kept.bytes_max), forgotten, "Gave up states of snapshot reads: what was replaced and is kept for them takes too much");
                continue;
            }
            let oldest = self.cursors.by_age();
            // On disk all is kept that was replaced since the oldest state. Where something else reads that, a transaction
            // or a long command, no cursor that goes would help.
            let is_theirs = oldest.first().is_some_and(|(lsn, _)| *lsn <= self.catalog.store().oldest_snapshot());
            if oldest.is_empty() || kept.place == Place::Disk && !is_theirs {
                return;
            }
            let part = oldest.iter().take(oldest.len().div_ceil(CLOSED_PART));
            let closed = self.cursors.close_for_room(part.map(|(_, id)| *id));
            tracing::warn!(target: "QUERY", engine, place = ?kept.place, keptBytes = kept.bytes, maxBytes = limit.unwrap_or(kept.bytes_max), closed, "Closed idle cursors: what was replaced and is kept for them takes too much");
        }
    }
}

impl CursorStore {
    /// The waiting cursors that read states which are over, the oldest states first. Those of transactions are none of
    /// them: theirs is kept for as long as the transaction is open.
    fn by_age(&self) -> Vec<(Lsn, i64)> {
        let mut waiting: Vec<(Lsn, i64)> = Vec::new();
        self.for_each_waiting(|id, cursor| {
            let lsn = cursor.source.snapshot().filter(|_| cursor.transaction.is_none());
            waiting.extend(lsn.map(|lsn| (lsn, id)));
        });
        waiting.sort_unstable();
        waiting
    }
}
