//! Merges choose tables while no flush adds any.

use bunko_sync::{Condvar, Mutex, MutexGuard};

/// Keeps flushes from adding tables while a merge chooses tables.
///
/// The threshold below which a merge may forget versions is decided before the tree chooses tables. If a flush added
/// tables with newer versions in between, the merge would forget older versions that a view still needs. The tree makes
/// the merge's filter once it has chosen, which ends the choice.
#[derive(Default)]
pub(crate) struct Choice {
    is_open: Mutex<bool>,
    is_made: Condvar,
}

impl Choice {
    /// Begins a choice: the threshold is decided next, then the tables are chosen. The choice ends at the latest when
    /// the returned guard is dropped, also by a panic.
    pub fn begin(&self) -> OpenChoice<'_> {
        *self.is_open.lock() = true;
        OpenChoice(self)
    }

    /// Notes that the tables have been chosen, or that there were none to choose; wakes the waiting threads.
    pub fn end(&self) {
        *self.is_open.lock() = false;
        self.is_made.notify_all();
    }

    /// Waits until the tables are chosen; none can be chosen while the returned guard lives.
    pub fn wait(&self) -> MutexGuard<'_, bool> {
        let mut is_open = self.is_open.lock();
        self.is_made.wait_while(&mut is_open, |is_open| *is_open);
        is_open
    }
}

/// A choice that may still be open.
pub(crate) struct OpenChoice<'c>(&'c Choice);

impl Drop for OpenChoice<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}
