//! Merging the tree's tables, beside checkpoints.

#[cfg(all(test, feature = "models"))]
mod model;

use crate::accounts::Accounts;
use crate::backlog::Backlog;
use crate::dropped::Drops;
use crate::key;
use crate::leftovers::Leftovers;
use crate::state::State;
use arc_swap::ArcSwap;
use bunko_store::failpoint::{self, Failpoint};
use bunko_store::sync::{Condvar, Mutex, MutexGuard};
use bunko_store::{Lsn, Result};
use lsm_tree::compaction::Leveled;
use lsm_tree::{AbstractTree, AnyTree, SeqNo};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Tables of the first level before they are merged into the next. Each is asked by every read, but merging them costs writers.
const L0_TABLES_MAX: u8 = 16;
/// The same once there are no writers to cost.
const L0_TABLES_MAX_AT_REST: u8 = 2;
/// How long after a flush of any size to speak of nobody writes, it is taken.
const REST: Duration = Duration::from_secs(30);
/// A flush of less, in bytes, does not disturb the rest: the server itself writes now and then.
const FLUSH_BYTES_MIN: u64 = 1 << 20;
/// Most merges in a row: each moves one level on, seven is the tree's depth.
const ROUNDS_MAX: usize = 7;

/// Entries that the tables may hold for nothing, beside as many as live ones.
const DEAD_ENTRIES_MAX: u64 = 500_000;
/// Size of a table that a rewrite of all makes, in bytes.
const TABLE_BYTES: u64 = 64 << 20;

/// Keeps a flush from adding tables while a merge chooses some.
///
/// What a merge may forget is decided before the tree chooses among its tables. With tables between that hold newer
/// versions, older ones would be forgotten that a view still needs. The tree makes the merge's filter once it has chosen.
#[derive(Default)]
pub(crate) struct Choice {
    is_open: Mutex<bool>,
    is_made: Condvar,
}

impl Choice {
    /// What may be forgotten is decided next, then the tables are chosen; at the latest when what is returned goes, be it
    /// by a panic.
    pub fn begin(&self) -> OpenChoice<'_> {
        *self.is_open.lock() = true;
        OpenChoice(self)
    }

    /// The tables are chosen, or nothing is there to choose.
    pub fn end(&self) {
        *self.is_open.lock() = false;
        self.is_made.notify_all();
    }

    /// Waits until the tables are chosen; none can be chosen while what is returned lives.
    fn wait(&self) -> MutexGuard<'_, bool> {
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

/// The one who merges tables; the store has it do one thing at a time.
pub(crate) struct Merger {
    tree: AnyTree,
    leftovers: Arc<Leftovers>,
    state: Arc<ArcSwap<State>>,
    accounts: Arc<Accounts>,
    backlog: Arc<Backlog>,
    drops: Arc<Drops>,
    pub choice: Arc<Choice>,
    /// All that the tables hold is below.
    marked: AtomicU64,
    /// The last flush of any size to speak of, or the start; `None` where what was written since is to be merged all the same.
    last_flush: Mutex<Option<Instant>>,
    /// Since the start.
    count: AtomicU64,
}

impl Merger {
    /// `choice` is ended by the filter that the tree makes for a merge.
    pub fn new(
        tree: &AnyTree,
        leftovers: &Arc<Leftovers>,
        state: &Arc<ArcSwap<State>>,
        accounts: &Arc<Accounts>,
        backlog: &Arc<Backlog>,
        drops: &Arc<Drops>,
        choice: Arc<Choice>,
    ) -> Self {
        Self {
            tree: tree.clone(),
            leftovers: Arc::clone(leftovers),
            state: Arc::clone(state),
            accounts: Arc::clone(accounts),
            backlog: Arc::clone(backlog),
            drops: Arc::clone(drops),
            choice,
            marked: AtomicU64::new(0),
            last_flush: Mutex::new(Some(Instant::now())),
            count: AtomicU64::new(0),
        }
    }

    /// All that the next flush adds is below that.
    pub fn mark(&self, watermark: Lsn) {
        self.marked.store(watermark.0, Ordering::Relaxed);
    }

    /// So many bytes of a memtable have become tables.
    pub fn note_flush(&self, bytes: u64) {
        if bytes >= FLUSH_BYTES_MIN {
            *self.last_flush.lock() = Some(Instant::now());
        }
    }

    /// The next merge is made as if nobody had written for a while.
    pub fn come_to_rest(&self) {
        *self.last_flush.lock() = None;
    }

    /// To be held while tables are added.
    pub fn adding(&self) -> MutexGuard<'_, bool> {
        self.choice.wait()
    }

    pub fn compactions(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// The tree forgets versions below the threshold that have a successor, however new that is. So only when no open
    /// view is older than all that the tables hold may anything be forgotten at all.
    pub fn forgettable(&self, oldest_view: Lsn) -> SeqNo {
        let marked = self.marked.load(Ordering::Relaxed);
        if oldest_view.0 >= marked { marked } else { 0 }
    }

    /// Merges what has become too much; `oldest_view` is asked before each merge.
    pub fn merge(&self, oldest_view: &dyn Fn() -> Lsn) -> Result<()> {
        match self.merge_levels(oldest_view) {
            Err(_) if self.backlog.is_given_up() => Ok(()),
            outcome => outcome,
        }
    }

    fn merge_levels(&self, oldest_view: &dyn Fn() -> Lsn) -> Result<()> {
        self.drop_tables(oldest_view())?;
        let is_at_rest = self.last_flush.lock().is_none_or(|last| last.elapsed() >= REST);
        let tables_max = if is_at_rest { L0_TABLES_MAX_AT_REST } else { L0_TABLES_MAX };
        for _ in 0..ROUNDS_MAX {
            let before = self.below_first_level();
            let strategy = Arc::new(Leveled::default().with_l0_threshold(tables_max));
            self.change(oldest_view(), |threshold| self.tree.compact(strategy, threshold))?;
            if self.below_first_level() == before {
                break;
            }
        }
        // Merging level by level keeps little that is superseded. What is left after a drop, or after most of a
        // collection was deleted, it may never come to.
        let (stored, live) = self.entries();
        let oldest_view = oldest_view();
        let is_worth_while = stored > 2 * live + DEAD_ENTRIES_MAX && self.forgettable(oldest_view) > 0;
        if is_worth_while { self.rewrite_tables(oldest_view) } else { Ok(()) }
    }

    /// Entries in the tables, and how many there are in the newest state.
    fn entries(&self) -> (u64, u64) {
        let stored = self.tree.current_version().iter_tables().map(|table| table.metadata.item_count).sum();
        let live = self.accounts.copy().accounts().map(|(_, account)| account.entries).sum();
        (stored, live)
    }

    /// Bytes of entries that are superseded, but cannot go before all views from the oldest on are closed.
    pub fn kept_bytes(&self, oldest_view: Lsn) -> u64 {
        if self.forgettable(oldest_view) > 0 {
            return 0;
        }
        let (stored, live) = self.entries();
        let superseded_part = stored.saturating_sub(live) as f64 / stored.max(1) as f64;
        (self.tree.disk_space() as f64 * superseded_part) as u64
    }

    /// Rewrites all tables.
    pub fn rewrite(&self, oldest_view: Lsn) -> Result<()> {
        self.drop_tables(oldest_view)?;
        self.rewrite_tables(oldest_view)
    }

    fn rewrite_tables(&self, oldest_view: Lsn) -> Result<()> {
        self.change(oldest_view, |threshold| self.tree.major_compact(TABLE_BYTES, threshold))
    }

    /// Removes tables that hold nothing but dropped keyspaces; those that hold others too are left to merges.
    fn drop_tables(&self, oldest_view: Lsn) -> Result<()> {
        self.leftovers.sweep()?;
        let dropped = self.drops.seen_by_all(oldest_view);
        // Neighbours go together: each range costs the tree a sync.
        for neighbours in dropped.chunk_by(|one, next| one.0 + 1 == next.0) {
            self.tree.drop_range(key::all_of(neighbours)).map_err(|error| self.leftovers.files.error(error))?;
        }
        if !dropped.is_empty() {
            self.state.rcu(|state| state.compacted(&self.tree));
            self.drops.forget(&dropped);
        }
        Ok(())
    }

    fn change(&self, oldest_view: Lsn, change: impl FnOnce(SeqNo) -> lsm_tree::Result<()>) -> Result<()> {
        let writing = self.leftovers.begin()?;
        let choice = self.choice.begin();
        let threshold = self.forgettable(oldest_view);
        failpoint::pass(Failpoint::ThresholdDecided);
        let outcome = change(threshold);
        drop(choice);
        outcome.map_err(|error| self.leftovers.files.error(error))?;
        writing.finish();
        self.count.fetch_add(1, Ordering::Relaxed);
        self.state.rcu(|state| state.compacted(&self.tree));
        Ok(())
    }

    /// The tables below the first level, with their levels: flushes change none of it.
    fn below_first_level(&self) -> Vec<(usize, u64)> {
        let version = self.tree.current_version();
        let levels = version.iter_levels().enumerate().skip(1);
        levels
            .flat_map(|(number, level)| {
                level.iter().flat_map(move |run| run.iter().map(move |table| (number, table.id())))
            })
            .collect()
    }
}
