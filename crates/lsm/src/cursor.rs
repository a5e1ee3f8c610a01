//! Walking record stores and indexes.

use crate::documents::Documents;
use crate::key::KEYSPACE_BYTES;
use crate::memtable::MemtableWalk;
use crate::reader::Reader;
use crate::tree_files::TreeFiles;
use crate::view::{key_value, malformed};
use bunko_store::{Direction, KeyCursor, KeyspaceId, Location, RecordCursor, RecordId, Result};
use lsm_tree::{Guard, IterGuardImpl, UserKey, UserValue};
use std::sync::Arc;

type Items = Box<dyn DoubleEndedIterator<Item = IterGuardImpl> + Send + 'static>;

/// A key within its keyspace and its value; no value where it was deleted.
type Entry = (UserKey, Option<UserValue>);

/// Memtables and tables walked together: of equal keys the newest source's counts.
pub(crate) struct Walk {
    /// Newest first.
    memtables: Vec<(MemtableWalk, Option<Entry>)>,
    tables: Items,
    table_entry: Option<(UserKey, UserValue)>,
    files: Arc<TreeFiles>,
    direction: Direction,
    is_started: bool,
}

impl Walk {
    pub fn new(memtables: Vec<MemtableWalk>, tables: Items, files: Arc<TreeFiles>, direction: Direction) -> Self {
        let memtables = memtables.into_iter().map(|walk| (walk, None)).collect();
        Self { memtables, tables, table_entry: None, files, direction, is_started: false }
    }

    fn next(&mut self) -> Result<Option<(UserKey, UserValue)>> {
        if !self.is_started {
            self.is_started = true;
            for (walk, entry) in &mut self.memtables {
                *entry = walk.next();
            }
            self.memtables.retain(|(_, entry)| entry.is_some());
            self.advance_tables()?;
        }
        loop {
            // The usual case of a long scan: everything is in the tables.
            if self.memtables.is_empty() {
                let entry = self.table_entry.take();
                self.advance_tables()?;
                return Ok(entry);
            }
            let Some(key) = self.first_key() else { return Ok(None) };
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
            self.memtables.retain(|(_, entry)| entry.is_some());
            if let Some(Some(value)) = newest {
                return Ok(Some((key, value)));
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
        let item = match self.direction {
            Direction::Forward => self.tables.next(),
            Direction::Backward => self.tables.next_back(),
        };
        let item = item.map(|item| item.into_inner().map_err(|error| self.files.error(error)));
        self.table_entry =
            item.transpose()?.map(|(key, value)| (UserKey::from(key.get(KEYSPACE_BYTES..).unwrap_or_default()), value));
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
