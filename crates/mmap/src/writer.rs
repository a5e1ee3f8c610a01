//! Writes memtables into the data file.

use crate::committed::{Committed, name_of};
use crate::data_file::{DataFile, Entries, put_state};
use crate::free_pages;
use crate::memtable::{IndexKey, Memtable, Record};
use crate::stored::{self, PREFIX_BYTES, RECORD_HEADER_BYTES};
use bunko_store::{KeyspaceId, Lsn, RecordId, Result};
use heed::{PutFlags, ReservedSpace, RwTxn};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

/// Limits of one transaction, because LMDB holds all pages that it changes in memory.
const TRANSACTION_BYTES_MAX: usize = 64 << 20;
pub(crate) const TRANSACTION_ENTRIES_MAX: usize = 1 << 16;

/// The only writer of a data file.
#[derive(Default)]
pub(crate) struct Writer {
    /// LMDB's handles of the keyspaces that have been written to.
    handles: FxHashMap<KeyspaceId, Entries>,
}

/// Counts of written data.
#[derive(Clone, Copy, Default)]
pub(crate) struct Written {
    pub entries: u64,
    pub bytes: u64,
    pub transactions: u64,
}

impl Writer {
    /// Number of keyspaces for which LMDB has handles.
    pub fn handles(&self) -> usize {
        self.handles.len()
    }

    /// Writes memtables, the oldest first, and notes the watermark with the last of them; durable on return.
    ///
    /// A large amount is written in several transactions, with the watermark in the last one only. A crash between two
    /// of them leaves entries that are newer than the watermark. The log replays all of these: each came from a
    /// memtable that is newer than the last watermark, so its effect stands in the log after that watermark.
    pub fn write(&mut self, committed: &Committed, memtables: &[Arc<Memtable>], watermark: Lsn) -> Result<Written> {
        // LMDB trusts the pages that it changes, and the list of pages that it may write over. Damage there would
        // spread, or end the process.
        free_pages::count(committed)?;
        let mut writing = Writing::begin(committed, &mut self.handles)?;
        let dropped = memtables.iter().flat_map(|memtable| memtable.dropped()).collect();
        writing.drop_keyspaces(&dropped)?;
        for memtable in memtables {
            writing.memtable(memtable, &dropped)?;
        }
        writing.finish(watermark)
    }
}

/// Writes in one or several transactions.
struct Writing<'f> {
    file: &'f DataFile,
    /// The state in the file before this write.
    committed: &'f Committed,
    handles: &'f mut FxHashMap<KeyspaceId, Entries>,
    /// Handles that the present transaction opened, which are lost if it is aborted.
    opened: Vec<KeyspaceId>,
    /// `None` only between two transactions.
    transaction: Option<RwTxn<'f>>,
    pending_bytes: usize,
    pending_entries: usize,
    written: Written,
}

/// A keyspace's tree while it is being written, in order of keys.
struct OpenTree {
    keyspace: KeyspaceId,
    entries: Entries,
    /// The tree's last key at the beginning. Keys beyond it are appended.
    last: Option<Vec<u8>>,
    is_appending: bool,
}

impl<'f> Writing<'f> {
    fn begin(committed: &'f Committed, handles: &'f mut FxHashMap<KeyspaceId, Entries>) -> Result<Self> {
        let file = &*committed.file;
        let transaction = file.env.write_txn().map_err(|error| file.error(error))?;
        Ok(Self {
            file,
            committed,
            handles,
            opened: Vec::new(),
            transaction: Some(transaction),
            pending_bytes: 0,
            pending_entries: 0,
            written: Written::default(),
        })
    }

    fn lmdb<T>(&mut self, run: impl FnOnce(&'f DataFile, &mut RwTxn<'f>) -> heed::Result<T>) -> Result<T> {
        let transaction = self.transaction.as_mut().expect("there between commits");
        run(self.file, transaction).map_err(|error| self.file.error(error))
    }

    fn commit(&mut self) -> Result<()> {
        let transaction = self.transaction.take().expect("there between commits");
        transaction.commit().map_err(|error| self.file.error(error))?;
        self.opened.clear();
        self.written.transactions += 1;
        self.written.entries += self.pending_entries as u64;
        self.written.bytes += self.pending_bytes as u64;
        (self.pending_entries, self.pending_bytes) = (0, 0);
        Ok(())
    }

    fn finish(mut self, watermark: Lsn) -> Result<Written> {
        self.lmdb(|file, transaction| {
            let main = file.env.create_database(transaction, None)?;
            put_state(main, transaction, watermark)
        })?;
        self.commit()?;
        Ok(self.written)
    }

    fn drop_keyspaces(&mut self, dropped: &FxHashSet<KeyspaceId>) -> Result<()> {
        dropped.iter().try_for_each(|keyspace| self.drop_keyspace(*keyspace))
    }

    /// Writes a memtable's entries, except those of dropped keyspaces. Ids are never reused, so all entries of such a
    /// keyspace are older than its drop, whether the drop is in this memtable or a later one.
    fn memtable(&mut self, memtable: &Memtable, dropped: &FxHashSet<KeyspaceId>) -> Result<()> {
        for (keyspace, records) in memtable.all_records() {
            if !dropped.contains(&keyspace) {
                let mut target = self.target(keyspace)?;
                let mut outcome = Ok(());
                records.for_each(|id, newest| {
                    if outcome.is_ok() {
                        outcome = self.record(&mut target, *id, newest.value());
                    }
                });
                outcome?;
            }
        }
        for (keyspace, keys) in memtable.all_keys() {
            if !dropped.contains(&keyspace) {
                let mut target = self.target(keyspace)?;
                let mut long_keys = LongKeys::default();
                let mut outcome = Ok(());
                keys.for_each(|key, newest| {
                    if outcome.is_ok() {
                        outcome = self.key(&mut target, &mut long_keys, key, newest.value().copied());
                    }
                });
                outcome?;
                self.long_keys(&mut target, &mut long_keys)?;
            }
        }
        Ok(())
    }

    /// Gives a keyspace's pages back to LMDB.
    fn drop_keyspace(&mut self, keyspace: KeyspaceId) -> Result<()> {
        // Closes the handle even if the transaction fails.
        self.handles.remove(&keyspace);
        self.lmdb(|file, transaction| {
            let entries: Option<Entries> = file.env.open_database(transaction, Some(&name_of(keyspace)))?;
            // SAFETY: no other handle of it is in use: views read pages, and the writer's handle was removed above.
            entries.map_or(Ok(()), |entries| unsafe { entries.remove(transaction) })
        })
    }

    fn target(&mut self, keyspace: KeyspaceId) -> Result<OpenTree> {
        let entries = match self.handles.get(&keyspace) {
            Some(entries) => *entries,
            None => {
                let entries: Entries =
                    self.lmdb(|file, transaction| file.env.create_database(transaction, Some(&name_of(keyspace))))?;
                self.handles.insert(keyspace, entries);
                self.opened.push(keyspace);
                entries
            }
        };
        self.committed.check_way(keyspace, &[u8::MAX; PREFIX_BYTES])?;
        let last = self.lmdb(|_, transaction| Ok(entries.last(transaction)?.map(|(key, _)| key.to_vec())))?;
        Ok(OpenTree { keyspace, entries, is_appending: last.is_none(), last })
    }

    fn record(&mut self, target: &mut OpenTree, id: RecordId, value: Option<&Record>) -> Result<()> {
        let key = id.0.to_be_bytes();
        let Some(record) = value else { return self.delete(target, &key) };
        let header = stored::record_header(target.keyspace, id, record.location);
        self.put(target, &key, RECORD_HEADER_BYTES + record.document.len(), |space| {
            space.write_all(&header)?;
            space.write_all(&record.document)
        })
    }

    fn key(
        &mut self,
        target: &mut OpenTree,
        long_keys: &mut LongKeys,
        key: &IndexKey,
        value: Option<RecordId>,
    ) -> Result<()> {
        let prefix = stored::prefix(key);
        if long_keys.prefix != prefix {
            self.long_keys(target, long_keys)?;
        }
        if stored::is_shared(prefix) {
            prefix.clone_into(&mut long_keys.prefix);
            long_keys.changes.insert(key[prefix.len()..].to_vec(), value);
            return Ok(());
        }
        let Some(record) = value else { return self.delete(target, key) };
        let value = stored::key_value(target.keyspace, key, record);
        self.put(target, key, value.len(), |space| space.write_all(&value))
    }

    /// Rewrites the entry of long keys with a common prefix.
    fn long_keys(&mut self, target: &mut OpenTree, long_keys: &mut LongKeys) -> Result<()> {
        let LongKeys { prefix, changes } = std::mem::take(long_keys);
        if prefix.is_empty() {
            return Ok(());
        }
        let entries = target.entries;
        let before = self.lmdb(|_, transaction| Ok(entries.get(transaction, &prefix)?.map(<[u8]>::to_vec)))?;
        let before = before.unwrap_or_default();
        let mut keys = BTreeMap::new();
        for long in stored::long_keys(target.keyspace, &prefix, &before) {
            let (rest, record) = long.map_err(|found| self.file.corrupt(0, found))?;
            keys.insert(rest, record);
        }
        for (rest, record) in &changes {
            match record {
                Some(record) => keys.insert(rest, *record),
                None => keys.remove(rest.as_slice()),
            };
        }
        if keys.is_empty() {
            return self.delete(target, &prefix);
        }
        let mut entry = Vec::new();
        for (rest, record) in keys {
            stored::push_long_key(target.keyspace, &prefix, rest, record, &mut entry);
        }
        self.put(target, &prefix, entry.len(), |space| space.write_all(&entry))
    }

    fn put(
        &mut self,
        target: &mut OpenTree,
        key: &[u8],
        length_bytes: usize,
        write: impl FnOnce(&mut ReservedSpace<'_>) -> std::io::Result<()>,
    ) -> Result<()> {
        self.reach(target, key)?;
        let OpenTree { entries, is_appending, .. } = *target;
        let is_written = self.lmdb(|_, transaction| {
            if is_appending {
                // Appending needs no search, and leaves full pages behind.
                let flags = PutFlags::APPEND;
                let found = entries.get_or_put_reserved_with_flags(transaction, flags, key, length_bytes, write)?;
                return Ok(found.is_none());
            }
            entries.put_reserved(transaction, key, length_bytes, write).map(|()| true)
        })?;
        if !is_written {
            return Err(self.file.corrupt(0, "a last key that is not the last"));
        }
        self.count(key.len() + length_bytes)
    }

    fn delete(&mut self, target: &mut OpenTree, key: &[u8]) -> Result<()> {
        self.reach(target, key)?;
        if target.is_appending {
            return Ok(());
        }
        let entries = target.entries;
        self.lmdb(|_, transaction| entries.delete(transaction, key))?;
        self.count(key.len())
    }

    /// Checks the pages on the way to a key. Keys come in order: once a key is beyond the tree's last key, so are all
    /// later keys, and no page is checked any more.
    fn reach(&self, target: &mut OpenTree, key: &[u8]) -> Result<()> {
        if target.is_appending {
            return Ok(());
        }
        target.is_appending = target.last.as_deref().is_none_or(|last| key > last);
        self.committed.check_way(target.keyspace, key)
    }

    fn count(&mut self, bytes: usize) -> Result<()> {
        self.pending_bytes += bytes;
        self.pending_entries += 1;
        if self.pending_bytes >= TRANSACTION_BYTES_MAX || self.pending_entries >= TRANSACTION_ENTRIES_MAX {
            self.commit()?;
            self.transaction = Some(self.file.env.write_txn().map_err(|error| self.file.error(error))?);
        }
        Ok(())
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        // LMDB closes the handles that an aborted transaction opened.
        for keyspace in self.opened.drain(..) {
            self.handles.remove(&keyspace);
        }
    }
}

/// Changes of long keys with one prefix.
#[derive(Default)]
struct LongKeys {
    /// Empty if there are no changes.
    prefix: Vec<u8>,
    changes: BTreeMap<Vec<u8>, Option<RecordId>>,
}
