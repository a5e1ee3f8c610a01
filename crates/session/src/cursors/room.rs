//! Closes waiting cursors when the snapshots kept for them take too much room.
//!
//! A waiting cursor reads the snapshot from when it was opened, and storage engines retain the data of that snapshot.
//! Without a limit, other clients' writes could fail or a disk could fill up. MongoDB's cursors see the present data
//! when they continue, so they retain nothing, and its clients can handle a cursor that is gone.

use super::store::CursorStore;
use bunko_catalog::Catalog;
use bunko_store::{KeptForViews, Lsn, Medium};

/// The oldest of the idle cursors are closed, one in this many, before the room is checked again.
const CLOSED_PART: usize = 8;

impl CursorStore {
    /// Closes waiting cursors, oldest snapshots first, until the data that engines retain only for snapshots is within
    /// `limit` bytes, or within the engine's own limit. Call it every few seconds, on a thread that may block for a
    /// moment.
    pub fn close_that_keep_too_much(&self, catalog: &Catalog, limit: Option<u64>) {
        let past = catalog.past_states();
        if self.is_empty() && past.kept() == 0 {
            return;
        }
        let is_too_much = |kept: &KeptForViews| kept.bytes > limit.unwrap_or(kept.bytes_max);
        loop {
            let kept = catalog.store().kept_for_snapshots();
            let Some((engine, kept)) = kept.into_iter().find(|(_, kept)| is_too_much(kept)) else { return };
            // Past states for later snapshot reads go first: no cursor reads them now.
            let forgotten = past.forget_oldest();
            if forgotten > 0 {
                tracing::warn!(target: "QUERY", id = 146, engine, place = ?kept.place, keptBytes = kept.bytes, maxBytes = limit.unwrap_or(kept.bytes_max), forgotten, "Forgot past states for snapshot reads: the replaced data that they keep take too much room");
                continue;
            }
            let oldest = self.by_age();
            // On disk, engines keep everything that was replaced since the oldest snapshot. If a transaction or a long
            // command holds that snapshot, closing cursors would not help.
            let is_theirs = oldest.first().is_some_and(|(lsn, _)| *lsn <= catalog.store().oldest_view());
            if oldest.is_empty() || kept.place == Medium::Disk && !is_theirs {
                return;
            }
            let part = oldest.iter().take(oldest.len().div_ceil(CLOSED_PART));
            let closed = self.close_for_room(part.map(|(_, id)| *id));
            tracing::warn!(target: "QUERY", id = 147, engine, place = ?kept.place, keptBytes = kept.bytes, maxBytes = limit.unwrap_or(kept.bytes_max), closed, "Closed idle cursors: the replaced data that they keep take too much room");
        }
    }

    /// The waiting cursors that hold a snapshot, oldest first. Cursors of transactions are left out: their snapshot is
    /// held as long as the transaction is open.
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
