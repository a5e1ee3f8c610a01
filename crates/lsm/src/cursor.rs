//! Walking record stores and indexes.

use crate::documents::Documents;
use crate::key::{self, KEYSPACE_BYTES, Range};
use crate::memtable::{Memtable, MemtableWalk};
use crate::reader::Reader;
use crate::state::State;
use crate::tree_files::TreeFiles;
use crate::view::{key_value, malformed};
use arc_swap::ArcSwap;
use bunko_store::{Direction, KeyCursor, KeyspaceId, Location, RecordCursor, RecordId, Result};
use lsm_tree::{AbstractTree, AnyTree, Guard, IterGuardImpl, SeqNo, UserKey, UserValue};
use std::ops::Bound;
use std::sync::Arc;

type Items = Box<dyn DoubleEndedIterator<Item = IterGuardImpl> + Send + 'static>;

/// The tree's own walk over its tables. The blocks that it reads stay in the tree's cache, so nothing of it counts as the
/// operation's: it is made, asked and dropped without counting.
struct TableWalk(Option<Items>);

impl TableWalk {
    fn new(begin: impl FnOnce() -> Items) -> Self {
        let _uncounted = bunko_heap::Uncounted::begin();
        Self(Some(begin()))
    }

    /// The next entry, with its key as it stands in the tree.
    fn next(&mut self, direction: Direction) -> lsm_tree::Result<Option<(UserKey, UserValue)>> {
        let _uncounted = bunko_heap::Uncounted::begin();
        let item = self.0.as_mut().and_then(|items| match direction {
            Direction::Forward => items.next(),
            Direction::Backward => items.next_back(),
        });
        item.map(Guard::into_inner).transpose()
    }
}

impl Drop for TableWalk {
    fn drop(&mut self) {
        let _uncounted = bunko_heap::Uncounted::begin();
        self.0 = None;
    }
}

/// A key within its keyspace and its value; no value where it was deleted.
type Entry = (UserKey, Option<UserValue>);

/// Where a walk goes.
pub(crate) struct Route {
    pub keyspace: KeyspaceId,
    pub range: Range,
    pub direction: Direction,
    pub before: SeqNo,
}

/// Memtables and tables walked together, as they were when the walk began, or when a memtable went that it had not
/// come to the end of: then the walk begins anew behind its last key.
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
            if let Some(last) = self.merged.last.take() {
                let last = Bound::Excluded(last.to_vec());
                match self.route.direction {
                    Direction::Forward => self.route.range.0 = last,
                    Direction::Backward => self.route.range.1 = last,
                }
            }
            if is_over(&self.route.range) {
                return Ok(None);
            }
            self.merged = Merged::new(&self.tree, &self.state.load(), &self.route);
        }
    }
}

/// Whether nothing is left of a range.
fn is_over(range: &Range) -> bool {
    match range {
        (Bound::Included(start), Bound::Included(end)) => start > end,
        (Bound::Included(start) | Bound::Excluded(start), Bound::Included(end) | Bound::Excluded(end)) => start >= end,
        _ => false,
    }
}

/// What a walk came to.
enum Step {
    /// The next entry, or the end.
    Entry(Option<(UserKey, UserValue)>),
    /// A memtable that is gone.
    Gone,
}

/// Of equal keys the newest source's counts.
struct Merged {
    /// Newest first.
    memtables: Vec<(MemtableWalk, Option<Entry>)>,
    tables: TableWalk,
    table_entry: Option<(UserKey, UserValue)>,
    files: Arc<TreeFiles>,
    direction: Direction,
    is_started: bool,
    /// The last key that was come to, as long as memtables are walked.
    last: Option<UserKey>,
}

impl Merged {
    fn new(tree: &AnyTree, state: &State, route: &Route) -> Self {
        let Route { keyspace, range, direction, before } = route;
        let walk = |memtable: &Arc<Memtable>| memtable.walk(*keyspace, range.clone(), *direction, *before);
        let memtables = state.memtables().map(|memtable| (walk(memtable), None)).collect();
        // After the memtables: what goes from them stands here.
        let tables = TableWalk::new(|| tree.range(key::in_tree(*keyspace, range.clone()), *before, None));
        let files = Arc::clone(&state.files);
        Self { memtables, tables, table_entry: None, files, direction: *direction, is_started: false, last: None }
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
            // The usual case of a long scan: everything is in the tables.
            if self.memtables.is_empty() {
                let entry = self.table_entry.take();
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
            if self.table_entry.as_ref().is_some_and(|(own, _)| *own == key) {
                let value = self.table_entry.take().map(|(_, value)| value);
                newest.get_or_insert(value);
                self.advance_tables()?;
            }
            self.last = Some(key.clone());
            if let Some(Some(value)) = newest {
                return Ok(Step::Entry(Some((key, value))));
            }
        }
    }

    /// The key that comes next in any source.
    fn first_key(&self) -> Option<UserKey> {
        let of_memtables = self.memtables.iter().filter_map(|(_, entry)| entry.as_ref().map(|(key, _)| key));
        let keys = of_memtables.chain(self.table_entry.as_ref().map(|(key, _)| key));
        match self.direction {
            Direction::Forward => keys.min(),
            Direction::Backward => keys.max(),
        }
        .cloned()
    }

    fn advance_tables(&mut self) -> Result<()> {
        let entry = self.tables.next(self.direction).map_err(|error| self.files.error(error))?;
        self.table_entry = entry.map(|(key, value)| {
            let own = UserKey::from(key.get(KEYSPACE_BYTES..).unwrap_or_default());
            // It was taken without counting.
            let _uncounted = bunko_heap::Uncounted::begin();
            drop(key);
            (own, value)
        });
        Ok(())
    }
}

/// Walks an index.
pub(crate) struct LsmKeyCursor {
    walk: Walk,
    current: Option<UserKey>,
}

impl LsmKeyCursor {
    pub fn new(walk: Walk) -> Self {
        Self { walk, current: None }
    }
}

impl KeyCursor for LsmKeyCursor {
    fn next(&mut self) -> Result<Option<(&[u8], RecordId)>> {
        let Some((key, value)) = self.walk.next()? else { return Ok(None) };
        let record = key_value(&value)?.record;
        Ok(Some((self.current.insert(key), record)))
    }
}

/// Walks a record store; documents that stand close together are read together.
pub(crate) struct LsmRecordCursor {
    walk: Walk,
    keyspace: KeyspaceId,
    documents: Arc<Documents>,
    reader: Reader,
}

impl LsmRecordCursor {
    pub fn new(walk: Walk, keyspace: KeyspaceId, documents: Arc<Documents>) -> Self {
        Self { walk, keyspace, documents, reader: Reader::default() }
    }
}

impl RecordCursor for LsmRecordCursor {
    fn next(&mut self) -> Result<Option<(RecordId, Location, &[u8])>> {
        let Some((key, value)) = self.walk.next()? else { return Ok(None) };
        let record =
            key.first_chunk().map(|id| RecordId(u64::from_be_bytes(*id))).ok_or_else(|| malformed("record key"))?;
        let location = Location::decode(&value).ok_or_else(|| malformed("location"))?;
        Ok(Some((record, location, self.reader.read(&self.documents, self.keyspace, location)?)))
    }
}
