//! Snapshots of the store. Versions that open snapshots see are kept.
//!
//! A snapshot keeps data until it is dropped. Its `Pin` is then closed, and engines may forget the versions that
//! `Store::oldest_view` has passed. Snapshots do not expire here: their owners end them, which are cursors
//! (`close_that_keep_too_much` of `session`), transactions (`abort_expired`) and past states (`past.rs` of `catalog`).

use crate::delegate::Delegate;
use crate::{Engine, KeptForViews, KeyspaceId, Lsn, Store, View};
use bunko_bson::Timestamp;
use bunko_versions::{OpenViews, Views};
use std::sync::Arc;

/// A view whose versions are kept while it is open.
pub struct Snapshot {
    pub(crate) view: Box<dyn View>,
    pub(crate) lsn: Lsn,
    /// `None` if the view keeps another snapshot open instead.
    pub(crate) _pin: Option<Pin>,
}

/// LSNs of open snapshots, with their counts.
#[derive(Default)]
pub(crate) struct Snapshots(OpenViews);

/// Keeps the versions that a view as of `lsn` sees, until it is dropped.
pub(crate) struct Pin {
    lsn: Lsn,
    snapshots: Arc<Snapshots>,
}

impl Snapshots {
    /// Pins the state that `current` returns. `current` is called under the lock, so that no checkpoint forgets the
    /// state in between.
    pub(crate) fn pin(self: &Arc<Self>, current: impl FnOnce() -> Lsn) -> (Lsn, Pin) {
        self.pinned(self.0.open(|| current().0))
    }

    /// Pins the oldest pinned state once more, or the state that `current` returns if none so old is pinned.
    pub(crate) fn pin_oldest(self: &Arc<Self>, current: impl FnOnce() -> Lsn) -> (Lsn, Pin) {
        self.pinned(self.0.open_oldest(|| current().0))
    }

    fn pinned(self: &Arc<Self>, lsn: u64) -> (Lsn, Pin) {
        (Lsn(lsn), Pin { lsn: Lsn(lsn), snapshots: Arc::clone(self) })
    }

    /// The states that are pinned or may be pinned later; `current` returns the oldest state that may be.
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
    /// The oldest state that an open snapshot shows, or the committed state. It is the lower bound of the states of all
    /// present and future views.
    pub fn oldest_view(&self) -> Lsn {
        Lsn(self.views().oldest())
    }

    pub(crate) fn views(&self) -> Views<'_> {
        self.snapshots.views(|| self.committed())
    }

    /// The oldest state that an open snapshot shows, or the committed state.
    pub fn oldest_snapshot(&self) -> Lsn {
        Lsn(self.views().oldest())
    }

    /// Versions that each engine keeps only because old snapshots are open. Waits for a running step of reclaim, which
    /// pins the oldest state: without the wait, snapshots that are closed already would seem to be open.
    pub fn kept_for_snapshots(&self) -> Vec<(&'static str, KeptForViews)> {
        let _no_reclaim = self.reclaimer.running.lock();
        let (oldest, now) = (self.oldest_snapshot(), self.watermark.visible());
        let kept = |engine: &Arc<dyn Engine>| {
            // No client waits for this call, so memory that is no longer needed can be freed here.
            engine.release();
            engine.kept_for_views(oldest).into_iter().map(|kept| (engine.name(), kept)).collect::<Vec<_>>()
        };
        if oldest < now { self.engines.all().iter().flat_map(kept).collect() } else { Vec::new() }
    }

    /// Exclusive upper bound of the LSNs that a snapshot taken now sees.
    pub fn visible_end(&self) -> Lsn {
        self.watermark.visible()
    }

    /// A snapshot of the present state, which is kept while the snapshot is open.
    pub fn snapshot(&self) -> Snapshot {
        // The gate keeps a checkpoint from beginning between the choice of the state and its view.
        let _gate = self.gate.read();
        let (lsn, pin) = self.snapshots.pin(|| self.watermark.visible());
        Snapshot { view: self.engines.view(lsn), lsn, _pin: Some(pin) }
    }

    /// A snapshot of the present state, and the time of its newest record.
    pub fn timed_snapshot(&self) -> (Snapshot, Timestamp) {
        loop {
            let (end, at) = self.watermark.now();
            let snapshot = self.snapshot();
            // If a record came in between, the time of the state is not known, and the loop tries again.
            if snapshot.lsn() == end {
                return (snapshot, at);
            }
        }
    }
}

impl Snapshot {
    /// Exclusive upper bound of the LSNs that the snapshot sees.
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// Another handle on this state, which stays open as long as either is.
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
