//! Where the newest state is: two memtables and the tables. Replaced as a whole, so readers take no lock.

use crate::key;
use crate::memtable::{Known, Memtable};
use crate::tree_files::TreeFiles;
use bunko_store::{KeyspaceId, Result};
use lsm_tree::table::filter::standard_bloom;
use lsm_tree::{AbstractTree, AnyTree, SeqNo, Table, UserValue};
use std::sync::Arc;

/// One version of the tree's tables, in functions because its type has no name outside of the tree's own crate.
#[derive(Clone)]
struct Tables {
    get: Arc<Get>,
    is_vacant: Arc<IsVacant>,
    runs: Arc<Runs>,
}

/// Looks a key of the tree up.
type Get = dyn Fn(&[u8], SeqNo) -> lsm_tree::Result<Option<UserValue>> + Send + Sync;

/// Whether no table reaches over a key from the first to the last.
type IsVacant = dyn Fn(&[u8], &[u8]) -> bool + Send + Sync;

/// The tables of each run, in the order of their keys.
type Runs = dyn Fn() -> Vec<Vec<Table>> + Send + Sync;

/// One arrangement of what the engine holds; what comes first hides what comes later.
#[derive(Clone)]
pub(crate) struct State {
    pub active: Arc<Memtable>,
    /// Being flushed, newest first.
    pub sealed: Vec<Arc<Memtable>>,
    tables: Tables,
    pub files: Arc<TreeFiles>,
}

impl State {
    pub fn new(tree: &AnyTree, files: &Arc<TreeFiles>) -> Self {
        Self { active: Arc::default(), sealed: Vec::new(), tables: tables_of(tree), files: Arc::clone(files) }
    }

    /// A new memtable is written to from now on.
    pub fn sealed(&self) -> Self {
        let sealed = std::iter::once(&self.active).chain(&self.sealed).cloned().collect();
        Self { active: Arc::default(), sealed, ..self.clone() }
    }

    /// That memtable stands in the tables now.
    pub fn flushed(&self, memtable: &Arc<Memtable>, tree: &AnyTree) -> Self {
        let sealed = self.sealed.iter().filter(|sealed| !Arc::ptr_eq(sealed, memtable)).cloned().collect();
        Self { sealed, tables: tables_of(tree), ..self.clone() }
    }

    /// The tables were rewritten.
    pub fn compacted(&self, tree: &AnyTree) -> Self {
        Self { tables: tables_of(tree), ..self.clone() }
    }

    /// The memtables, newest first.
    pub fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        std::iter::once(&self.active).chain(&self.sealed)
    }

    /// The newest value below `before`.
    pub fn get(&self, keyspace: KeyspaceId, key: &[u8], before: SeqNo) -> Result<Option<UserValue>> {
        for memtable in self.memtables() {
            match memtable.get(keyspace, key, before) {
                Some(Known::Value(value)) => return Ok(Some(value)),
                Some(Known::Deleted) => return Ok(None),
                None => {}
            }
        }
        let found = {
            // Blocks that are read stay in the tree's cache.
            let _uncounted = bunko_heap::Uncounted::begin();
            key::with_key(keyspace, key, |key| (self.tables.get)(key, before))
        };
        found.map_err(|error| self.files.error(error))
    }

    /// The tables, by runs.
    pub fn runs(&self) -> Vec<Vec<Table>> {
        (self.tables.runs)()
    }

    /// Whether neither a memtable knows a key from `first` to `last`, nor a table reaches over one.
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

/// The tables as they are now. A reader that went through the tree instead would wait for the fsyncs of whoever
/// changes it.
fn tables_of(tree: &AnyTree) -> Tables {
    let version = tree.current_version();
    let (of_ranges, of_runs) = (version.clone(), version.clone());
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
    let runs = move || of_runs.iter_levels().flat_map(|level| level.iter()).map(|run| run.to_vec()).collect();
    Tables { get: Arc::new(get), is_vacant: Arc::new(is_vacant), runs: Arc::new(runs) }
}
