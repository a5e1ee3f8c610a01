//! Merges the tree's tables, also while checkpoints run.
//!
//! ```text
//!       begin                      the tree made its filter,
//! idle ───────► open: threshold ── or nothing was to merge: end ──► merging, beside flushes ──► registered ──► idle
//!               decided, no flush
//!               adds tables
//! ```
//! After a checkpoint, first the tables that hold only dropped keyspaces go. Then 16 tables of the first level are
//! merged, or two once no notable flush has come for half a minute or after `prepare_for_reads`: every read asks each
//! of them. A stop gives up a merge that is going on, and the tables stay as they were.

#[cfg(all(test, feature = "models"))]
mod model;

use crate::accounts::Accounts;
use crate::backlog::Backlog;
use crate::dropped::Drops;
use crate::key;
use crate::leftovers::Leftovers;
use crate::merge_choice::Choice;
use crate::state::State;
use arc_swap::ArcSwap;
use bunko_store::failpoint::{self, Failpoint};
use bunko_store::{Lsn, Result};
use bunko_sync::{Mutex, MutexGuard};
use lsm_tree::compaction::Leveled;
use lsm_tree::{AbstractTree, AnyTree, SeqNo};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Number of tables in the first level that a merge waits for. Every read looks into each of them, but merging slows
/// writers down.
const L0_TABLES_MAX: u8 = 16;
/// As [`L0_TABLES_MAX`], when there are no writers to slow down.
const L0_TABLES_MAX_AT_REST: u8 = 2;
/// Time after the last notable flush from which on there are taken to be no writers.
const REST: Duration = Duration::from_secs(30);
/// A smaller flush, in bytes, is not notable: the server itself writes now and then.
const FLUSH_BYTES_MIN: u64 = 1 << 20;
/// Maximum number of merges in a row: each moves data one level down, and the tree has seven levels.
const ROUNDS_MAX: usize = 7;

/// The tables may hold as many dead entries as live ones, and this many more; then all are rewritten.
const DEAD_ENTRIES_MAX: u64 = 500_000;
/// Size in bytes of the tables that a rewrite of all tables makes.
const TABLE_BYTES: u64 = 64 << 20;

/// Merges tables; the store calls it for one thing at a time.
pub(crate) struct Merger {
    tree: AnyTree,
    leftovers: Arc<Leftovers>,
    state: Arc<ArcSwap<State>>,
    accounts: Arc<Accounts>,
    backlog: Arc<Backlog>,
    drops: Arc<Drops>,
    pub choice: Arc<Choice>,
    /// Exclusive upper bound of the LSNs in the tables.
    marked: AtomicU64,
    /// Time of the last notable flush, or of the start; `None` if the next merge is to ignore recent writes.
    last_flush: Mutex<Option<Instant>>,
    /// Number of merges since the start.
    count: AtomicU64,
}

impl Merger {
    /// The filters that the tree makes for merges end `choice`.
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
            last_flush: Mutex::default(),
            count: AtomicU64::new(0),
        }
    }

    /// Notes the exclusive upper bound of the LSNs in the next flush.
    pub fn mark(&self, watermark: Lsn) {
        self.marked.store(watermark.0, Ordering::Relaxed);
    }

    /// Notes that this many bytes of a memtable have become tables.
    pub fn note_flush(&self, bytes: u64, now: Instant) {
        if bytes >= FLUSH_BYTES_MIN {
            *self.last_flush.lock() = Some(now);
        }
    }

    /// Notes the start: clients are expected to write soon.
    pub fn note_start(&self, now: Instant) {
        *self.last_flush.lock() = Some(now);
    }

    /// Makes the next merge as thorough as if no client had written for a while.
    pub fn come_to_rest(&self) {
        *self.last_flush.lock() = None;
    }

    /// A guard that must be held while tables are added.
    pub fn adding(&self) -> MutexGuard<'_, bool> {
        self.choice.wait()
    }

    pub fn compactions(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Threshold for forgetting versions. The tree forgets every version below the threshold that has a successor, even
    /// if the successor is above it. So the threshold is 0, and nothing is forgotten, unless all open views see
    /// everything in the tables.
    pub fn forgettable(&self, oldest_view: Lsn) -> SeqNo {
        let marked = self.marked.load(Ordering::Relaxed);
        if oldest_view.0 >= marked { marked } else { 0 }
    }

    /// Merges tables where there are too many; `oldest_view` is called before each merge.
    pub fn merge(&self, oldest_view: &dyn Fn() -> Lsn, now: Instant) -> Result<()> {
        match self.merge_levels(oldest_view, now) {
            Err(_) if self.backlog.is_given_up() => Ok(()),
            outcome => outcome,
        }
    }

    fn merge_levels(&self, oldest_view: &dyn Fn() -> Lsn, now: Instant) -> Result<()> {
        self.drop_tables(oldest_view())?;
        let is_at_rest = self.last_flush.lock().is_none_or(|last| now.saturating_duration_since(last) >= REST);
        let tables_max = if is_at_rest { L0_TABLES_MAX_AT_REST } else { L0_TABLES_MAX };
        for _ in 0..ROUNDS_MAX {
            let before = self.below_first_level();
            let strategy = Arc::new(Leveled::default().with_l0_threshold(tables_max));
            self.change(oldest_view(), |threshold| self.tree.compact(strategy, threshold))?;
            if self.below_first_level() == before {
                break;
            }
        }
        // Merging level by level leaves few superseded entries. But a merge may never reach the entries that remain
        // after a drop, or after most of a collection was deleted.
        let (stored, live) = self.entries();
        let oldest_view = oldest_view();
        let is_worth_while = stored > 2 * live + DEAD_ENTRIES_MAX && self.forgettable(oldest_view) > 0;
        if is_worth_while { self.rewrite_tables(oldest_view) } else { Ok(()) }
    }

    /// Number of entries in the tables, and in the newest state.
    fn entries(&self) -> (u64, u64) {
        let stored = self.tree.current_version().iter_tables().map(|table| table.metadata.item_count).sum();
        let live = self.accounts.copy().accounts().map(|(_, account)| account.entries).sum();
        (stored, live)
    }

    /// Bytes of superseded entries that must stay until all views from the oldest on are closed.
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

    /// Removes tables that hold only dropped keyspaces; tables that hold others too are left to merges.
    fn drop_tables(&self, oldest_view: Lsn) -> Result<()> {
        self.leftovers.sweep()?;
        let dropped = self.drops.seen_by_all(oldest_view);
        // Adjacent keyspaces are dropped together, because each range costs the tree a sync.
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

    /// The tables below the first level, with their levels. Flushes do not change these.
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
