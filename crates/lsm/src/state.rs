//! The memtables and tables of the newest state. Replaced as a whole, so that readers take no lock.

use crate::key;
use crate::leaves::{Leaf, Leaves};
use crate::memtable::{Known, Memtable};
use crate::tree_files::TreeFiles;
use crate::tree_values::malformed;
use bunko_store::{KeyspaceId, Location, RecordId, Result};
use lsm_tree::table::filter::standard_bloom;
use lsm_tree::{AbstractTree, AnyTree, SeqNo, Table, UserValue};
use std::ops::ControlFlow;
use std::sync::Arc;

/// One version of the tree's tables, as functions, because the version's type has no public name in lsm-tree.
#[derive(Clone)]
struct Tables {
    get: Arc<Get>,
    is_vacant: Arc<IsVacant>,
    ask: Arc<Ask>,
    reaching: Arc<Reaching>,
    runs_reaching: Arc<RunsReaching>,
}

/// Looks up a key in the tree's form.
type Get = dyn Fn(&[u8], SeqNo) -> lsm_tree::Result<Option<UserValue>> + Send + Sync;

/// Whether no table's key range overlaps the keys from the first to the last.
type IsVacant = dyn Fn(&[u8], &[u8]) -> bool + Send + Sync;

/// Shows the tables that may have a key, the newest first, until the visitor breaks off.
type Ask = dyn Fn(&[u8], &mut dyn FnMut(&Table) -> ControlFlow<()>) + Send + Sync;

/// The tables that overlap a range in the tree's form.
pub(crate) enum Reach {
    None,
    One(Table),
    Several,
}

/// Finds the tables that overlap a range.
type Reaching = dyn Fn(&key::Range) -> Reach + Send + Sync;

/// Finds the tables that overlap a range, by runs.
type RunsReaching = dyn Fn(&key::Range) -> Vec<Vec<Table>> + Send + Sync;

/// One arrangement of memtables and tables. A newer memtable hides entries of older ones, and all memtables hide those
/// of tables.
#[derive(Clone)]
pub(crate) struct State {
    pub active: Arc<Memtable>,
    /// Memtables that are being flushed, newest first.
    pub sealed: Vec<Arc<Memtable>>,
    tables: Tables,
    pub files: Arc<TreeFiles>,
}

impl State {
    pub fn new(tree: &AnyTree, files: &Arc<TreeFiles>) -> Self {
        Self { active: Arc::default(), sealed: Vec::new(), tables: tables_of(tree), files: Arc::clone(files) }
    }

    /// The state with a new active memtable; the present one is sealed.
    pub fn sealed(&self) -> Self {
        let sealed = std::iter::once(&self.active).chain(&self.sealed).cloned().collect();
        Self { active: Arc::default(), sealed, ..self.clone() }
    }

    /// The state after a memtable was flushed to the tables.
    pub fn flushed(&self, memtable: &Arc<Memtable>, tree: &AnyTree) -> Self {
        let sealed = self.sealed.iter().filter(|sealed| !Arc::ptr_eq(sealed, memtable)).cloned().collect();
        Self { sealed, tables: tables_of(tree), ..self.clone() }
    }

    /// The state after tables were rewritten.
    pub fn compacted(&self, tree: &AnyTree) -> Self {
        Self { tables: tables_of(tree), ..self.clone() }
    }

    /// The memtables, newest first.
    pub fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        std::iter::once(&self.active).chain(&self.sealed)
    }

    /// The value or deletion of a key below `before` in the memtables; `None` if they have neither.
    fn known(&self, keyspace: KeyspaceId, key: &[u8], before: SeqNo) -> Option<Known> {
        self.memtables().find_map(|memtable| memtable.get(keyspace, key, before))
    }

    /// The newest value of a key below `before`; `None` if there is none, or if it was deleted.
    pub fn get(&self, keyspace: KeyspaceId, key: &[u8], before: SeqNo) -> Result<Option<UserValue>> {
        match self.known(keyspace, key, before) {
            Some(Known::Value(value)) => return Ok(Some(value)),
            Some(Known::Deleted) => return Ok(None),
            None => {}
        }
        let found = {
            // Blocks that are read stay in the tree's cache, so their memory does not count for the operation.
            let _uncounted = bunko_heap::Uncounted::begin();
            key::with_key(keyspace, key, |key| (self.tables.get)(key, before))
        };
        found.map_err(|error| self.files.error(error))
    }

    /// The tables that overlap a range in the tree's form, by runs.
    pub fn runs_reaching(&self, range: &key::Range) -> Vec<Vec<Table>> {
        (self.tables.runs_reaching)(range)
    }

    /// Location of a record's document: the newest one below `before`; `None` if there is none, or if it was deleted.
    pub fn location(
        &self,
        leaves: &Leaves<Leaf>,
        keyspace: KeyspaceId,
        record: RecordId,
        before: SeqNo,
    ) -> Result<Option<Location>> {
        let key = record.0.to_be_bytes();
        match self.known(keyspace, &key, before) {
            Some(Known::Value(value)) => {
                return Location::decode(&value).map(Some).ok_or_else(|| malformed("location"));
            }
            Some(Known::Deleted) => return Ok(None),
            None => {}
        }
        let mut found = Ok(None);
        key::with_key(keyspace, &key, |key| {
            (self.tables.ask)(key, &mut |table| {
                found = leaves.find(table, keyspace, record.0, before);
                if matches!(found, Ok(None)) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
        });
        Ok(found?.and_then(|entry| entry.location()))
    }

    /// The tables that overlap a range in the tree's form.
    pub fn reaching(&self, range: &key::Range) -> Reach {
        (self.tables.reaching)(range)
    }

    /// Whether no memtable has a key from `first` to `last`, and no table's key range overlaps them.
    pub fn is_vacant(&self, keyspace: KeyspaceId, first: &[u8], last: &[u8]) -> bool {
        let is_known = |memtable: &Arc<Memtable>| memtable.knows_any(keyspace, first, last);
        let in_tables = || {
            key::with_key(keyspace, first, |first| {
                key::with_key(keyspace, last, |last| (self.tables.is_vacant)(first, last))
            })
        };
        !self.memtables().any(is_known) && in_tables()
    }
}

/// The present tables. A reader that asked the tree instead would wait for the fsyncs of threads that change it.
fn tables_of(tree: &AnyTree) -> Tables {
    let version = tree.current_version();
    let (of_ranges, of_asked, of_reach, of_runs) = (version.clone(), version.clone(), version.clone(), version.clone());
    let get = move |key: &[u8], before| {
        let hash = standard_bloom::Builder::get_hash(key);
        let candidates = version.iter_levels().flat_map(|level| level.iter()).filter_map(|run| run.get_for_key(key));
        for table in candidates {
            if let Some(entry) = table.get(key, before, hash)? {
                return Ok((!entry.is_tombstone()).then_some(entry.value));
            }
        }
        Ok(None)
    };
    let is_vacant = move |first: &[u8], last: &[u8]| {
        let mut ranges = of_ranges.iter_tables().map(|table| &table.metadata.key_range);
        !ranges.any(|range| &**range.min() <= last && &**range.max() >= first)
    };
    let ask = move |key: &[u8], visit: &mut dyn FnMut(&Table) -> ControlFlow<()>| {
        let mut hash = None;
        for table in of_asked.iter_levels().flat_map(|level| level.iter()).filter_map(|run| run.get_for_key(key)) {
            // If a filter cannot be read, the table's blocks are searched.
            let is_known = table.pinned_filter_block.as_ref().is_none_or(|filter| {
                let hash = *hash.get_or_insert_with(|| standard_bloom::Builder::get_hash(key));
                filter.maybe_contains_hash(hash).unwrap_or(true)
            });
            if is_known && visit(table).is_break() {
                return;
            }
        }
    };
    let reaching = move |range: &key::Range| {
        let mut found = Reach::None;
        for run in of_reach.iter_levels().flat_map(|level| level.iter()) {
            match (run.range_overlap_indexes(range), &found) {
                (None, _) => {}
                (Some((first, last)), Reach::None) if first == last => found = Reach::One(run[first].clone()),
                (Some(_), _) => return Reach::Several,
            }
        }
        found
    };
    let runs_reaching = move |range: &key::Range| {
        let runs = of_runs.iter_levels().flat_map(|level| level.iter());
        let of_run =
            runs.filter_map(|run| run.range_overlap_indexes(range).map(|(first, last)| run[first..=last].to_vec()));
        of_run.collect()
    };
    Tables {
        get: Arc::new(get),
        is_vacant: Arc::new(is_vacant),
        ask: Arc::new(ask),
        reaching: Arc::new(reaching),
        runs_reaching: Arc::new(runs_reaching),
    }
}
