//! Open views of past states.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Open views, by the LSN before which each sees everything. Opening, closing and asking take one search each, however
/// many views there are.
#[derive(Debug, Default)]
pub struct OpenViews(Mutex<BTreeMap<u64, usize>>);

impl OpenViews {
    /// Opens a view of the state that `current` returns. `current` is called under the lock, so that no version of the
    /// state is dropped in between.
    pub fn open(&self, current: impl FnOnce() -> u64) -> u64 {
        let mut open = self.0.lock();
        let before = current();
        *open.entry(before).or_insert(0) += 1;
        before
    }

    /// Opens the oldest open view once more, or a view of the state that `current` returns if that is older.
    pub fn open_oldest(&self, current: impl FnOnce() -> u64) -> u64 {
        let mut open = self.0.lock();
        let next = current();
        let before = open.first_key_value().map_or(next, |(before, _)| (*before).min(next));
        *open.entry(before).or_insert(0) += 1;
        before
    }

    /// Closes a view.
    pub fn close(&self, before: u64) {
        let mut open = self.0.lock();
        if let Some(count) = open.get_mut(&before) {
            *count -= 1;
            if *count == 0 {
                open.remove(&before);
            }
        }
    }

    /// The open views and the future ones, which are not older than the state that `current` returns.
    pub fn now(&self, current: impl FnOnce() -> u64) -> Views<'_> {
        let open = self.0.lock();
        let next = current();
        let oldest = open.first_key_value().map_or(next, |(before, _)| (*before).min(next));
        Views { open: Some(self), oldest, next }
    }
}

/// The open and the future views.
#[derive(Clone, Copy, Debug)]
pub struct Views<'v> {
    /// `None` if views from `oldest` on are unknown and any may exist.
    open: Option<&'v OpenViews>,
    oldest: u64,
    /// No future view is of a state older than this.
    next: u64,
}

impl From<u64> for Views<'_> {
    /// Any view from `oldest` on may exist.
    fn from(oldest: u64) -> Self {
        Self { open: None, oldest, next: oldest }
    }
}

impl Views<'_> {
    /// The oldest possible view.
    pub fn oldest(&self) -> u64 {
        self.oldest
    }

    /// Whether a view may see a version that the write `made` created and the write `superseded` replaced.
    pub fn may_see(&self, made: u64, superseded: u64) -> bool {
        if superseded < self.oldest {
            return false;
        }
        let Some(open) = self.open.filter(|_| superseded < self.next) else { return true };
        let between = (Bound::Excluded(made), Bound::Included(superseded));
        made < superseded && open.0.lock().range(between).next().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_view_may_be_a_future_one() {
        let views = OpenViews::default();
        views.open(|| 9);
        assert_eq!(views.open_oldest(|| 7), 7);
        assert_eq!(views.now(|| 8).oldest(), 7);
    }

    #[test]
    fn the_oldest_view_counts_as_often_as_it_is_open() {
        let views = OpenViews::default();
        let oldest = |current| views.now(|| current).oldest();
        assert_eq!((views.open(|| 5), views.open(|| 5), views.open(|| 9), views.open_oldest(|| 12)), (5, 5, 9, 5));
        for _ in 0..3 {
            assert_eq!(oldest(12), 5);
            views.close(5);
        }
        assert_eq!(oldest(12), 9);
        views.close(9);
        assert_eq!((oldest(12), views.open_oldest(|| 12)), (12, 12));
    }

    #[test]
    fn states_between_two_views_are_seen_by_none() {
        let open = OpenViews::default();
        open.open(|| 10);
        open.open(|| 20);
        let views = open.now(|| 30);
        let seen = [(5, 9), (5, 10), (9, 10), (10, 15), (10, 19), (10, 20), (20, 25), (20, 29), (20, 30), (40, 50)];
        let seen = seen.map(|(made, superseded)| views.may_see(made, superseded));
        assert_eq!(seen, [false, true, true, false, false, true, false, false, true, true]);
        assert!(Views::from(10).may_see(10, 15) && !Views::from(10).may_see(5, 9));
    }
}
