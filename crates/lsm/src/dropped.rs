//! Removes dropped keyspaces: tables that hold only dropped keyspaces are removed at once, and entries in tables with
//! other keyspaces when these tables are next merged.

use crate::accounts::Accounts;
use crate::backlog::{Backlog, PacedWork};
use crate::key::KEYSPACE_BYTES;
use crate::merge_choice::Choice;
use bunko_store::{KeyspaceId, Lsn};
use lsm_tree::compaction::filter::{CompactionFilter, Context, Factory, ItemAccessor, Verdict};
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// Dropped keyspaces whose tables still exist. The tables may go only once the drop is durable and no view is older.
#[derive(Default)]
pub(crate) struct Drops(Mutex<Stages>);

#[derive(Default)]
struct Stages {
    since_mark: Vec<(KeyspaceId, Lsn)>,
    before_mark: Vec<(KeyspaceId, Lsn)>,
    durable: Vec<(KeyspaceId, Lsn)>,
}

impl Drops {
    /// Notes that a keyspace was dropped.
    pub fn add(&self, keyspace: KeyspaceId, lsn: Lsn) {
        self.0.lock().since_mark.push((keyspace, lsn));
    }

    /// Notes that a checkpoint is marked.
    pub fn mark(&self) {
        let stages = &mut *self.0.lock();
        stages.before_mark.append(&mut stages.since_mark);
    }

    /// Notes that the log is durable up to the mark.
    pub fn mark_is_durable(&self) {
        let stages = &mut *self.0.lock();
        stages.durable.append(&mut stages.before_mark);
    }

    /// Keyspaces whose drop is durable and seen by all views, in order.
    pub fn seen_by_all(&self, oldest_view: Lsn) -> Vec<KeyspaceId> {
        let stages = self.0.lock();
        let seen = stages.durable.iter().filter(|(_, lsn)| *lsn < oldest_view);
        let mut seen: Vec<_> = seen.map(|(keyspace, _)| *keyspace).collect();
        seen.sort_unstable();
        seen
    }

    /// Notes that the tables of these keyspaces are gone; `gone` must be in order.
    pub fn forget(&self, gone: &[KeyspaceId]) {
        self.0.lock().durable.retain(|(keyspace, _)| gone.binary_search(keyspace).is_err());
    }
}

/// Makes a filter for each compaction, once its tables are chosen. Filters also set the compaction's pace.
pub(crate) struct WithoutDropped {
    accounts: AssertUnwindSafe<Arc<Accounts>>,
    backlog: Arc<Backlog>,
    choice: AssertUnwindSafe<Arc<Choice>>,
}

impl WithoutDropped {
    pub fn new(accounts: &Arc<Accounts>, backlog: &Arc<Backlog>, choice: &Arc<Choice>) -> Arc<Self> {
        Arc::new(Self {
            accounts: AssertUnwindSafe(Arc::clone(accounts)),
            backlog: Arc::clone(backlog),
            choice: AssertUnwindSafe(Arc::clone(choice)),
        })
    }
}

impl WithoutDropped {
    /// Notes that the tables of a merge are chosen, and returns the merge's filter.
    pub fn begin(&self) -> Filter {
        self.choice.end();
        let work = self.backlog.begin_merge();
        Filter { needed: self.accounts.needed_keyspaces(), last: None, work }
    }
}

impl Factory for WithoutDropped {
    fn name(&self) -> &'static str {
        "without dropped keyspaces"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        Box::new(self.begin())
    }
}

/// Drops the entries of unneeded keyspaces from one merge, and sets the merge's pace.
pub(crate) struct Filter {
    needed: FxHashSet<KeyspaceId>,
    /// The last entry's keyspace, and whether it is needed: adjacent entries are mostly of one keyspace.
    last: Option<(KeyspaceId, bool)>,
    work: PacedWork,
}

impl Filter {
    fn is_needed(&mut self, keyspace: KeyspaceId) -> bool {
        match self.last {
            Some((last, is_needed)) if last == keyspace => is_needed,
            _ => {
                let is_needed = self.needed.contains(&keyspace);
                self.last = Some((keyspace, is_needed));
                is_needed
            }
        }
    }
}

impl CompactionFilter for Filter {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> lsm_tree::Result<Verdict> {
        if self.work.is_given_up() {
            return Err(std::io::Error::from(std::io::ErrorKind::Interrupted).into());
        }
        self.work.did(1);
        let Some(prefix) = item.key().first_chunk::<KEYSPACE_BYTES>() else { return Ok(Verdict::Keep) };
        // Ids are never reused, so no reader needs older entries of the keyspace that other tables still have.
        let is_needed = self.is_needed(KeyspaceId(u32::from_be_bytes(*prefix)));
        Ok(if is_needed { Verdict::Keep } else { Verdict::Destroy })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drop_takes_effect_once_it_is_durable_and_seen_by_all() {
        let drops = Drops::default();
        drops.add(KeyspaceId(7), Lsn(20));
        drops.add(KeyspaceId(3), Lsn(10));
        drops.mark();
        drops.add(KeyspaceId(5), Lsn(30));
        assert_eq!(drops.seen_by_all(Lsn(100)), []);
        drops.mark_is_durable();
        assert_eq!(drops.seen_by_all(Lsn(20)), [KeyspaceId(3)]);
        assert_eq!(drops.seen_by_all(Lsn(21)), [KeyspaceId(3), KeyspaceId(7)]);
        drops.forget(&[KeyspaceId(3)]);
        drops.mark();
        drops.mark_is_durable();
        assert_eq!(drops.seen_by_all(Lsn(100)), [KeyspaceId(5), KeyspaceId(7)]);
    }
}
