//! Which past states somebody still looks at.

use crate::Lsn;
use bunko_versions::{OpenViews, Views};
use std::sync::Arc;

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
