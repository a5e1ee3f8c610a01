//! Walks record stores and indexes.

use crate::documents::Documents;
use crate::key::{self, KEYSPACE_BYTES, Range};
use crate::key_walk::KeyWalk;
use crate::leaf_walk::{LeafStep, LeafWalk, RecordRoute};
use crate::leaves::{Leaf, Leaves};
use crate::lone_table::LoneTable;
use crate::memtable::{Memtable, MemtableWalk};
use crate::reader::Reader;
use crate::state::{Reach, State};
use crate::tree_files::TreeFiles;
use crate::tree_values::{key_value, malformed};
use arc_swap::ArcSwap;
use bunko_store::{Direction, KeyCursor, KeyspaceId, Location, RecordCursor, RecordId, Result};
use lsm_tree::{AbstractTree, AnyTree, Guard, IterGuardImpl, SeqNo, UserKey, UserValue};
use std::ops::Bound;
use std::sync::Arc;

type Items = Box<dyn DoubleEndedIterator<Item = IterGuardImpl> + Send + 'static>;

/// A walk over the tables.
enum TableWalk {
    /// The walk has ended.
    Over,
    /// A forward walk over the only table that overlaps the range.
    Lone(Box<LoneTable>),
    /// The tree's own walk.
    Tree(Items),
}

/// A walk over the tables. The blocks that it reads stay in the tree's cache, so its memory does not count for the
/// operation: it is made, advanced and dropped uncounted.
struct UncountedWalk(TableWalk);

impl UncountedWalk {
    fn new(begin: impl FnOnce() -> TableWalk) -> Self {
        let _uncounted = bunko_heap::Uncounted::begin();
        Self(begin())
    }

    /// The next entry; its key has the tree's form. `None` at the end.
    fn next(&mut self, direction: Direction) -> lsm_tree::Result<Option<(UserKey, UserValue)>> {
        let _uncounted = bunko_heap::Uncounted::begin();
        let item = match (&mut self.0, direction) {
            (TableWalk::Over, _) => None,
            (TableWalk::Lone(walk), _) => return walk.next(),
            (TableWalk::Tree(items), Direction::Forward) => items.next(),
            (TableWalk::Tree(items), Direction::Backward) => items.next_back(),
        };
        item.map(Guard::into_inner).transpose()
    }
}

impl Drop for UncountedWalk {
    fn drop(&mut self) {
        let _uncounted = bunko_heap::Uncounted::begin();
        self.0 = TableWalk::Over;
    }
}

/// Entries of the tables, merged by the tree, with the next one.
struct TableSide {
    walk: UncountedWalk,
    next: Option<(UserKey, UserValue)>,
}

impl TableSide {
    fn new(tree: &AnyTree, state: &State, route: &Route) -> Self {
        let walk = UncountedWalk::new(|| {
            let range = key::in_tree(route.keyspace, route.range.clone());
            match (state.reaching(&range), route.direction) {
                (Reach::One(table), Direction::Forward) => {
                    TableWalk::Lone(Box::new(LoneTable::new(table, range, route.before)))
                }
                _ => TableWalk::Tree(tree.range(range, route.before, None)),
            }
        });
        Self { walk, next: None }
    }

    fn advance(&mut self, direction: Direction, files: &TreeFiles) -> Result<()> {
        let entry = self.walk.next(direction).map_err(|error| files.error(error))?;
        self.next = entry.map(|(key, value)| {
            let own = UserKey::from(key.get(KEYSPACE_BYTES..).unwrap_or_default());
            // The key was allocated uncounted, so it is freed uncounted.
            let _uncounted = bunko_heap::Uncounted::begin();
            drop(key);
            (own, value)
        });
        Ok(())
    }

    /// The next key; `None` at the end.
    fn key(&self) -> Option<&UserKey> {
        self.next.as_ref().map(|(key, _)| key)
    }
}

/// A key within its keyspace, and its value; `None` for a deletion.
type Entry = (UserKey, Option<UserValue>);

/// The keyspace, range and direction of a walk, and the LSN below which it sees changes.
pub(crate) struct Route {
    pub keyspace: KeyspaceId,
    pub range: Range,
    pub direction: Direction,
    pub before: SeqNo,
}

impl Route {
    /// The range as record ids; `None` if a bound is not a record id, or the range is empty.
    fn records(&self) -> Option<RecordRoute> {
        let record = |key: &Vec<u8>| key.as_slice().try_into().ok().map(u64::from_be_bytes);
        let first = match &self.range.0 {
            Bound::Included(key) => record(key)?,
            Bound::Excluded(key) => record(key)?.checked_add(1)?,
            Bound::Unbounded => 0,
        };
        let last = match &self.range.1 {
            Bound::Included(key) => record(key)?,
            Bound::Excluded(key) => record(key)?.checked_sub(1)?,
            Bound::Unbounded => u64::MAX,
        };
        (first <= last).then_some(RecordRoute { keyspace: self.keyspace, first, last, before: self.before })
    }
}

/// Walks memtables and tables together. It sees the memtables and tables that existed when it began. If a memtable is
/// freed before the walk came to its end, it begins anew after its last key.
pub(crate) struct Walk {
    tree: AnyTree,
    state: Arc<ArcSwap<State>>,
    route: Route,
    merged: Merged,
}

impl Walk {
    pub fn new(tree: AnyTree, state: Arc<ArcSwap<State>>, route: Route) -> Self {
        let merged = Merged::new(&tree, &state.load(), &route);
        Self { tree, state, route, merged }
    }

    fn next(&mut self) -> Result<Option<(UserKey, UserValue)>> {
        loop {
            if let Step::Entry(entry) = self.merged.next()? {
                return Ok(entry);
            }
            if let Some(last) = self.merged.last_key() {
                self.set_behind(last);
            }
            if is_over(&self.route.range) {
                return Ok(None);
            }
            self.begin_anew();
        }
    }

    /// The rest of the walk after `record`, the last record that it came to, as a route for a walk by leaves.
    fn behind(&mut self, record: RecordId) -> Option<RecordRoute> {
        self.set_behind(record.0.to_be_bytes().to_vec());
        self.route.records()
    }

    fn set_behind(&mut self, last: Vec<u8>) {
        match self.route.direction {
            Direction::Forward => self.route.range.0 = Bound::Excluded(last),
            Direction::Backward => self.route.range.1 = Bound::Excluded(last),
        }
    }

    fn begin_anew(&mut self) {
        self.merged = Merged::new(&self.tree, &self.state.load(), &self.route);
    }
}

/// Whether the range is empty.
fn is_over(range: &Range) -> bool {
    match range {
        (Bound::Included(start), Bound::Included(end)) => start > end,
        (Bound::Included(start) | Bound::Excluded(start), Bound::Included(end) | Bound::Excluded(end)) => start >= end,
        _ => false,
    }
}

/// Result of a step.
enum Step {
    /// The next entry, or the end.
    Entry(Option<(UserKey, UserValue)>),
    /// A memtable was freed.
    Gone,
}

/// Merges memtables and tables: among equal keys, the entry from the newest source wins.
struct Merged {
    /// Memtables, newest first, with their next entries.
    memtables: Vec<(MemtableWalk, Option<Entry>)>,
    tables: TableSide,
    files: Arc<TreeFiles>,
    direction: Direction,
    is_started: bool,
    /// The last key, as long as memtables are walked.
    last: Option<UserKey>,
}

impl Merged {
    fn new(tree: &AnyTree, state: &State, route: &Route) -> Self {
        let Route { keyspace, range, direction, before, .. } = route;
        let walk = |memtable: &Arc<Memtable>| memtable.walk(*keyspace, range.clone(), *direction, *before);
        let memtables = state.memtables().map(|memtable| (walk(memtable), None)).collect();
        // Opened after the memtables, because entries of a memtable that is freed in between are then in the tables.
        let tables = TableSide::new(tree, state, route);
        let files = Arc::clone(&state.files);
        Self { memtables, tables, files, direction: *direction, is_started: false, last: None }
    }

    /// Takes the key after which the walk begins anew; `None` if it begins at the start of the range.
    fn last_key(&mut self) -> Option<Vec<u8>> {
        self.last.take().map(|key| key.to_vec())
    }

    fn next(&mut self) -> Result<Step> {
        if !self.is_started {
            self.is_started = true;
            for (walk, entry) in &mut self.memtables {
                *entry = walk.next();
            }
            self.advance_tables()?;
        }
        loop {
            if self.memtables.iter().any(|(walk, entry)| entry.is_none() && walk.is_gone()) {
                return Ok(Step::Gone);
            }
            self.memtables.retain(|(_, entry)| entry.is_some());
            // The usual case of a long scan: all memtables have ended, and the rest is in the tables.
            if self.memtables.is_empty() {
                let entry = self.tables.next.take();
                self.advance_tables()?;
                return Ok(Step::Entry(entry));
            }
            let Some(key) = self.first_key() else { return Ok(Step::Entry(None)) };
            let mut newest: Option<Option<UserValue>> = None;
            for (walk, entry) in &mut self.memtables {
                if entry.as_ref().is_some_and(|(own, _)| *own == key) {
                    let value = std::mem::replace(entry, walk.next()).and_then(|(_, value)| value);
                    newest.get_or_insert(value);
                }
            }
            if self.tables.key().is_some_and(|own| *own == key) {
                let value = self.tables.next.take().map(|(_, value)| value);
                newest.get_or_insert(value);
                self.advance_tables()?;
            }
            self.last = Some(key.clone());
            if let Some(Some(value)) = newest {
                return Ok(Step::Entry(Some((key, value))));
            }
        }
    }

    /// The smallest next key of all sources, or the largest in a backward walk; `None` at the end.
    fn first_key(&self) -> Option<UserKey> {
        let of_memtables = self.memtables.iter().filter_map(|(_, entry)| entry.as_ref().map(|(key, _)| key.clone()));
        let keys = of_memtables.chain(self.tables.key().cloned());
        match self.direction {
            Direction::Forward => keys.min(),
            Direction::Backward => keys.max(),
        }
    }

    fn advance_tables(&mut self) -> Result<()> {
        self.tables.advance(self.direction, &self.files)
    }
}

/// Walks an index.
pub(crate) enum LsmKeyCursor {
    Forward(KeyWalk),
    Backward {
        walk: Walk,
        /// The key that the last call lent.
        current: Option<UserKey>,
    },
}

impl KeyCursor for LsmKeyCursor {
    fn next(&mut self) -> Result<Option<(&[u8], RecordId)>> {
        match self {
            Self::Forward(walk) => walk.next(),
            Self::Backward { walk, current } => {
                let Some((key, value)) = walk.next()? else { return Ok(None) };
                let record = key_value(&value)?.record;
                Ok(Some((current.insert(key), record)))
            }
        }
    }

    fn go_to(&mut self, start: &[u8], end: &[u8]) -> bool {
        match self {
            Self::Forward(walk) => walk.go_to(start, end),
            Self::Backward { .. } => return false,
        }
        true
    }
}

/// After this many entries, an ascending walk over records goes on by leaves; shorter walks would not gain from it.
const ENTRIES_WITHOUT_LEAVES: u32 = 128;

/// Walks records in ascending order by leaves. It sees the tables and memtables that existed when it began, or when it
/// began anew because a memtable was freed before the walk came to its end.
struct LeafScan {
    state: Arc<ArcSwap<State>>,
    leaves: Arc<Leaves<Leaf>>,
    /// The rest of the route, after the last record found.
    route: RecordRoute,
    walk: LeafWalk,
    is_over: bool,
}

impl LeafScan {
    fn new(state: Arc<ArcSwap<State>>, leaves: Arc<Leaves<Leaf>>, route: RecordRoute) -> Self {
        let walk = LeafWalk::new(&state.load(), Arc::clone(&leaves), route);
        Self { state, leaves, route, walk, is_over: false }
    }

    fn next(&mut self) -> Result<Option<(u64, Location)>> {
        while !self.is_over {
            match self.walk.next()? {
                LeafStep::Record(record, location) => {
                    self.is_over = record == self.route.last;
                    self.route.first = record.saturating_add(1);
                    return Ok(Some((record, location)));
                }
                LeafStep::End => self.is_over = true,
                LeafStep::Gone => self.walk = LeafWalk::new(&self.state.load(), Arc::clone(&self.leaves), self.route),
            }
        }
        Ok(None)
    }
}

/// How records are walked.
enum Records {
    /// By the walk that indexes use. `leaves` is given for an ascending walk, which may turn out to be long.
    Merged {
        walk: Walk,
        leaves: Option<Arc<Leaves<Leaf>>>,
        entries: u32,
    },
    Leaves(LeafScan),
    /// The walk has ended.
    Over,
}

/// Walks a record store; documents that stand close together are read together.
pub(crate) struct LsmRecordCursor {
    records: Records,
    keyspace: KeyspaceId,
    documents: Arc<Documents>,
    reader: Reader,
}

impl LsmRecordCursor {
    /// `leaves` is given for an ascending walk.
    pub fn new(walk: Walk, keyspace: KeyspaceId, documents: Arc<Documents>, leaves: Option<Arc<Leaves<Leaf>>>) -> Self {
        let records = Records::Merged { walk, leaves, entries: 0 };
        Self { records, keyspace, documents, reader: Reader::default() }
    }

    fn next_place(&mut self) -> Result<Option<(RecordId, Location)>> {
        let (walk, leaves, entries) = match &mut self.records {
            Records::Leaves(scan) => return Ok(scan.next()?.map(|(record, location)| (RecordId(record), location))),
            Records::Over => return Ok(None),
            Records::Merged { walk, leaves, entries } => (walk, leaves, entries),
        };
        let Some((key, value)) = walk.next()? else { return Ok(None) };
        let record =
            key.first_chunk().map(|id| RecordId(u64::from_be_bytes(*id))).ok_or_else(|| malformed("record key"))?;
        let location = Location::decode(&value).ok_or_else(|| malformed("location"))?;
        *entries = entries.saturating_add(1);
        if *entries == ENTRIES_WITHOUT_LEAVES
            && let Some(leaves) = leaves.take()
        {
            let state = Arc::clone(&walk.state);
            self.records = match walk.behind(record) {
                Some(route) => Records::Leaves(LeafScan::new(state, leaves, route)),
                None => Records::Over,
            };
        }
        Ok(Some((record, location)))
    }
}

impl RecordCursor for LsmRecordCursor {
    fn next(&mut self) -> Result<Option<(RecordId, Location, &[u8])>> {
        let Some((record, location)) = self.next_place()? else { return Ok(None) };
        Ok(Some((record, location, self.reader.read(&self.documents, self.keyspace, location)?)))
    }
}
