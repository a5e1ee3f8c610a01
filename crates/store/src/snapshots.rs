//! States of the store that somebody reads, and which past ones are kept for that.

use crate::delegate::Delegate;
use crate::{Engine, KeptForViews, KeyspaceId, Lsn, Store, View};
use bunko_bson::Timestamp;
use bunko_versions::{OpenViews, Views};
use std::sync::Arc;

/// A view that keeps its history while it is open.
pub struct Snapshot {
    pub(crate) view: Box<dyn View>,
    pub(crate) lsn: Lsn,
    /// `None` where the view keeps another snapshot open.
    pub(crate) _pin: Option<Pin>,
}

/// Open snapshots by their LSN, with a count each.
#[derive(Default)]
pub(crate) struct Snapshots(OpenViews);

/// Keeps what a view as of `lsn` sees until dropped.
pub(crate) struct Pin {
    lsn: Lsn,
    snapshots: Arc<Snapshots>,
}

impl Snapshots {
    /// Pins the state that `current` names; read under the lock, so that no checkpoint forgets it in between.
    pub(crate) fn pin(self: &Arc<Self>, current: impl FnOnce() -> Lsn) -> (Lsn, Pin) {
        self.pinned(self.0.open(|| current().0))
    }

    /// Pins the oldest pinned state once more, or what `current` names where none is.
    pub(crate) fn pin_oldest(self: &Arc<Self>, current: impl FnOnce() -> Lsn) -> (Lsn, Pin) {
        self.pinned(self.0.open_oldest(|| current().0))
    }

    fn pinned(self: &Arc<Self>, lsn: u64) -> (Lsn, Pin) {
        (Lsn(lsn), Pin { lsn: Lsn(lsn), snapshots: Arc::clone(self) })
    }

    /// The states that are pinned, or may be; `current` names the oldest of those that are not yet.
    pub(crate) fn views(&self, current: impl FnOnce() -> Lsn) -> Views<'_> {
        self.0.now(|| current().0)
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.snapshots.0.close(self.lsn.0);
    }
}

impl Store {
    /// No view, open or to come, is of an older state.
    pub(crate) fn oldest_view(&self) -> Lsn {
        Lsn(self.views().oldest())
    }

    pub(crate) fn views(&self) -> Views<'_> {
        self.snapshots.views(|| self.watermark.visible())
    }

    /// The oldest state that a snapshot is open of, or the present one.
    pub fn oldest_snapshot(&self) -> Lsn {
        Lsn(self.views().oldest())
    }

    /// What each engine keeps only for snapshots that are open, of states that are over.
    pub fn kept_for_snapshots(&self) -> Vec<(&'static str, KeptForViews)> {
        let (oldest, now) = (self.oldest_snapshot(), self.watermark.visible());
        let kept = |engine: &Arc<dyn Engine>| {
            // Nobody waits here, so what was let go may go now.
            engine.release();
            engine.kept_for_views(oldest).into_iter().map(|kept| (engine.name(), kept)).collect::<Vec<_>>()
        };
        if oldest < now { self.engines.all().iter().flat_map(kept).collect() } else { Vec::new() }
    }

    /// The present state, kept while the snapshot is open.
    pub fn snapshot(&self) -> Snapshot {
        // No checkpoint begins between the choice of the state and its view.
        let _gate = self.gate.read();
        let (lsn, pin) = self.snapshots.pin(|| self.watermark.visible());
        Snapshot { view: self.engines.view(lsn), lsn, _pin: Some(pin) }
    }

    /// The present state and its time, that of the newest record, all of which is in it.
    pub fn timed_snapshot(&self) -> (Snapshot, Timestamp) {
        loop {
            let (end, at) = self.watermark.now();
            let snapshot = self.snapshot();
            // Else a record came in between, and it is tried again: the state is that of no known time.
            if snapshot.lsn() == end {
                return (snapshot, at);
            }
        }
    }
}

impl Snapshot {
    /// Everything below is seen.
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// The same state once more; it stays open as long as either is.
    #[must_use]
    pub fn share(self: &Arc<Self>) -> Self {
        Self { lsn: self.lsn, view: Box::new(Shared(Arc::clone(self))), _pin: None }
    }
}

/// A state that another snapshot keeps open.
struct Shared(Arc<Snapshot>);

impl Delegate for Shared {
    fn with<R>(&self, _: KeyspaceId, read: impl FnOnce(&dyn View) -> R) -> R {
        read(&*self.0.view)
    }
}

impl Delegate for Snapshot {
    fn with<R>(&self, _: KeyspaceId, read: impl FnOnce(&dyn View) -> R) -> R {
        read(&*self.view)
    }
}
