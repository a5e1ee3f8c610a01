//! Which past states somebody still looks at.

use crate::Lsn;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Open snapshots by their LSN, with a count each.
#[derive(Default)]
pub(crate) struct Snapshots {
    open: Mutex<BTreeMap<Lsn, usize>>,
}

/// Keeps history from `lsn` on until dropped.
pub(crate) struct Pin {
    lsn: Lsn,
    snapshots: Arc<Snapshots>,
}

impl Snapshots {
    /// Pins the state that `current` names; read under the lock, so that no checkpoint forgets it in between.
    pub(crate) fn pin(self: &Arc<Self>, current: impl FnOnce() -> Lsn) -> (Lsn, Pin) {
        let mut open = self.open.lock();
        let lsn = current();
        *open.entry(lsn).or_insert(0) += 1;
        (lsn, Pin { lsn, snapshots: Arc::clone(self) })
    }

    /// Pins the oldest pinned state once more, or what `current` names where none is.
    pub(crate) fn pin_oldest(self: &Arc<Self>, current: impl FnOnce() -> Lsn) -> (Lsn, Pin) {
        let mut open = self.open.lock();
        let lsn = open.first_key_value().map_or_else(current, |(&lsn, _)| lsn);
        *open.entry(lsn).or_insert(0) += 1;
        (lsn, Pin { lsn, snapshots: Arc::clone(self) })
    }

    /// The oldest pinned state, or what `current` names where none is.
    pub(crate) fn oldest(&self, current: impl FnOnce() -> Lsn) -> Lsn {
        let open = self.open.lock();
        open.first_key_value().map_or_else(current, |(&lsn, _)| lsn)
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut open = self.snapshots.open.lock();
        if let Some(count) = open.get_mut(&self.lsn) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.lsn);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_pin_counts() {
        let snapshots = Arc::new(Snapshots::default());
        let (_, first) = snapshots.pin(|| Lsn(5));
        let (_, second) = snapshots.pin(|| Lsn(5));
        let (_, third) = snapshots.pin(|| Lsn(9));
        drop(first);
        assert_eq!(snapshots.oldest(|| Lsn(12)), Lsn(5));
        drop(second);
        assert_eq!(snapshots.oldest(|| Lsn(12)), Lsn(9));
        drop(third);
        assert_eq!(snapshots.oldest(|| Lsn(12)), Lsn(12));
    }
}
