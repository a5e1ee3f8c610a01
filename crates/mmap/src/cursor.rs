//! Walking record stores and indexes.

use crate::arrangement::Arrangement;
use crate::committed::{Committed, TreeWalk};
use crate::memtable::{IndexKey, Record};
use crate::merge::{Memory, NextEntry, Tree, in_memory};
use crate::page::Slot;
use crate::stored;
use bunko_store::{Direction, KeyCursor, KeyRange, KeyspaceId, Location, RecordCursor, RecordId, RecordRange, Result};
use bunko_versions::{HeadKey, Walk};
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

/// The tree's next slot; drops the walk at its end.
fn next_slot(tree: &mut Option<TreeWalk>, committed: &Committed) -> Result<Option<Slot>> {
    let Some(walk) = tree else { return Ok(None) };
    let slot = walk.next(committed)?;
    if slot.is_none() {
        *tree = None;
    }
    Ok(slot)
}

/// Walks a record store. Documents are lent directly from the map.
pub(crate) struct MmapRecordCursor {
    keyspace: KeyspaceId,
    committed: Arc<Committed>,
    /// The walk over the tree; `None` after its end.
    tree: Option<TreeWalk>,
    /// The tree's next entry.
    head: Option<(RecordId, Slot)>,
    memory: Memory<RecordId, Record>,
    /// The memtable's record that the last call lent.
    lent: Option<Record>,
}

impl MmapRecordCursor {
    pub fn new(
        state: &Arrangement,
        keyspace: KeyspaceId,
        range: RecordRange,
        direction: Direction,
        before: u64,
    ) -> Self {
        let maps = state.memtables().filter_map(|memtable| memtable.records(keyspace));
        let walks = maps.map(|map| Walk::new(map, (range.start, range.end), in_memory(direction), before));
        let bound = |bound: Bound<RecordId>| bound.map(|record| record.0.to_be_bytes().to_vec());
        let tree = state.committed.trees.get(&keyspace);
        Self {
            keyspace,
            committed: Arc::clone(&state.committed),
            tree: tree.map(|tree| TreeWalk::new(*tree, (bound(range.start), bound(range.end)), direction)),
            head: None,
            memory: Memory::new(walks, direction),
            lent: None,
        }
    }

    fn fill_head(&mut self) -> Result<()> {
        if self.head.is_some() {
            return Ok(());
        }
        let Some(slot) = next_slot(&mut self.tree, &self.committed)? else { return Ok(()) };
        let entry = self.committed.entry(slot)?;
        let id =
            stored::record_id(entry.key).map_err(|found| self.committed.file.corrupt(entry.offset_bytes, found))?;
        self.head = Some((id, slot));
        Ok(())
    }
}

impl RecordCursor for MmapRecordCursor {
    fn next(&mut self) -> Result<Option<(RecordId, Location, &[u8])>> {
        loop {
            self.fill_head()?;
            let head = self.head.map(|(id, _)| id);
            match self.memory.turn(head.map(|head| move |key: &RecordId| key.cmp(&head))) {
                NextEntry::End => return Ok(None),
                NextEntry::Tree => break,
                NextEntry::Memory(id, value, tree) => {
                    if tree == Tree::Hidden {
                        self.head = None;
                    }
                    if let Some(record) = value {
                        let record = self.lent.insert(record);
                        return Ok(Some((id, record.location, &record.document)));
                    }
                }
            }
        }
        let Some((id, slot)) = self.head.take() else { return Ok(None) };
        let entry = self.committed.entry(slot)?;
        let (location, document) = stored::record(self.keyspace, entry.key, entry.value)
            .map_err(|found| self.committed.file.corrupt(entry.offset_bytes, found))?;
        Ok(Some((id, location, document)))
    }
}

/// Walks an index.
pub(crate) struct MmapKeyCursor {
    keyspace: KeyspaceId,
    committed: Arc<Committed>,
    range: KeyRange,
    direction: Direction,
    /// The walk over the tree; `None` after its end.
    tree: Option<TreeWalk>,
    head: Option<Head>,
    /// Long keys of the tree's present entry, all with one prefix.
    long_keys: VecDeque<(Vec<u8>, RecordId)>,
    memory: Memory<IndexKey, RecordId>,
    lent: Vec<u8>,
}

/// The tree's next key.
enum Head {
    Short(Slot, RecordId),
    Long(Vec<u8>, RecordId),
}

impl MmapKeyCursor {
    pub fn new(state: &Arrangement, keyspace: KeyspaceId, range: KeyRange, direction: Direction, before: u64) -> Self {
        let bounds = (range.start.clone(), range.end.clone());
        let maps = state.memtables().filter_map(|memtable| memtable.keys(keyspace));
        let walks = maps.map(|map| Walk::new(map, HeadKey::range(&bounds), in_memory(direction), before));
        let memory = Memory::new(walks, direction);
        let tree = state.committed.trees.get(&keyspace);
        Self {
            keyspace,
            committed: Arc::clone(&state.committed),
            tree: tree.map(|tree| TreeWalk::new(*tree, (in_tree(bounds.0), in_tree(bounds.1)), direction)),
            range,
            direction,
            head: None,
            long_keys: VecDeque::new(),
            memory,
            lent: Vec::new(),
        }
    }

    fn fill_head(&mut self) -> Result<()> {
        while self.head.is_none() {
            if let Some((key, record)) = self.long_keys.pop_front() {
                self.head = Some(Head::Long(key, record));
                return Ok(());
            }
            let Some(slot) = next_slot(&mut self.tree, &self.committed)? else { return Ok(()) };
            let entry = self.committed.entry(slot)?;
            let damaged = |found| self.committed.file.corrupt(entry.offset_bytes, found);
            if !stored::is_shared(entry.key) {
                let record = stored::key(self.keyspace, entry.key, entry.value).map_err(damaged)?;
                self.head = Some(Head::Short(slot, record));
                return Ok(());
            }
            for long in stored::long_keys(self.keyspace, entry.key, entry.value) {
                let (rest, record) = long.map_err(damaged)?;
                let key = [entry.key, rest].concat();
                if is_within(&self.range, &key) {
                    match self.direction {
                        Direction::Forward => self.long_keys.push_back((key, record)),
                        Direction::Backward => self.long_keys.push_front((key, record)),
                    }
                }
            }
        }
        Ok(())
    }
}

/// A bound for the tree, which is ordered by the keys' prefixes. Long keys outside the range are filtered out when they
/// are read.
fn in_tree(bound: Bound<Vec<u8>>) -> Bound<Vec<u8>> {
    match bound {
        Bound::Included(mut key) | Bound::Excluded(mut key) if key.len() >= stored::PREFIX_BYTES => {
            key.truncate(stored::PREFIX_BYTES);
            Bound::Included(key)
        }
        short => short,
    }
}

fn is_within(range: &KeyRange, key: &[u8]) -> bool {
    let is_after_start = match &range.start {
        Bound::Included(start) => key >= start.as_slice(),
        Bound::Excluded(start) => key > start.as_slice(),
        Bound::Unbounded => true,
    };
    is_after_start
        && match &range.end {
            Bound::Included(end) => key <= end.as_slice(),
            Bound::Excluded(end) => key < end.as_slice(),
            Bound::Unbounded => true,
        }
}

impl KeyCursor for MmapKeyCursor {
    fn next(&mut self) -> Result<Option<(&[u8], RecordId)>> {
        loop {
            self.fill_head()?;
            let head = match &self.head {
                Some(Head::Short(slot, _)) => Some(self.committed.entry(*slot)?.key),
                Some(Head::Long(key, _)) => Some(key.as_slice()),
                None => None,
            };
            match self.memory.turn(head.map(|head| move |key: &IndexKey| (**key).cmp(head))) {
                NextEntry::End => return Ok(None),
                NextEntry::Tree => break,
                NextEntry::Memory(key, value, tree) => {
                    if tree == Tree::Hidden {
                        self.head = None;
                    }
                    if let Some(record) = value {
                        self.lent.clear();
                        self.lent.extend_from_slice(&key);
                        return Ok(Some((&self.lent, record)));
                    }
                }
            }
        }
        match self.head.take() {
            Some(Head::Short(slot, record)) => Ok(Some((self.committed.entry(slot)?.key, record))),
            Some(Head::Long(key, record)) => {
                self.lent = key;
                Ok(Some((&self.lent, record)))
            }
            None => Ok(None),
        }
    }
}
