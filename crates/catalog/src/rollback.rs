//! Truncation of a member's log where it parts from the other members' logs, and rollback files.
//!
//! If the records after that position are applied, their documents are kept in files for an administrator: for each
//! collection one with the last versions that will be lost, as BSON documents one after the other, which `bsondump`
//! shows and `mongorestore` restores. The versions that the records replaced come back by themselves.
//! Source: MongoDB manual 8.2, "Rollbacks During Replica Set Failover".
//!
//! **Invariant:** the files are durable before the rollback is.

use crate::index_build::uuid_text;
use crate::{Catalog, Collection, Namespace, from_storage};
use bunko_bson::datetime::format_iso8601;
use bunko_errors::Result;
use bunko_store::{
    Effect, KeyspaceId, Location, Lsn, Position, RecordId, Result as Outcome, Rollback, StorageError, View, files,
    make_directory,
};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::PathBuf;

/// Maximum number of rollback files that are open at a time.
const OPEN_MAX: usize = 64;

/// The outcome of a truncation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncated {
    /// The log ends at the position.
    Done,
    /// Records after the position are applied here. The rollback is durable, and the next start of the data directory
    /// carries it out; until then, nothing more is taken.
    Reopen,
    /// A checkpoint has records after the position, so that all data must be copied from another member. Nothing was
    /// changed.
    NeedsInitialSync {
        /// The end of the checkpoint.
        checkpoint: Lsn,
    },
}

/// The rollback files of all collections.
struct RollbackFiles {
    directory: PathBuf,
    /// The date in the files' names.
    date: String,
    /// The files made so far.
    paths: HashMap<KeyspaceId, PathBuf>,
    open: HashMap<KeyspaceId, RollbackFile>,
}

struct RollbackFile {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Catalog {
    /// Truncates the log of a secondary to `to`, because the other members' logs go on differently there.
    /// # Errors
    /// `NotSecondary`; `InternalError` if the log never had that position, or has committed records after it; failures
    /// of the storage. Nothing is removed then.
    pub fn truncate_log(&self, to: Position) -> Result<Truncated> {
        match self.store.truncate_log(to) {
            Ok(()) => return Ok(Truncated::Done),
            Err(StorageError::AppliedAbove { .. }) => {}
            Err(error) => return Err(from_storage(error)),
        }
        let rollback = match self.store.begin_rollback(to) {
            Err(StorageError::NeedsInitialSync { checkpoint, .. }) => {
                return Ok(Truncated::NeedsInitialSync { checkpoint: Lsn(checkpoint) });
            }
            begun => begun.map_err(from_storage)?,
        };
        self.keep_lost_documents(&rollback).map_err(from_storage)?;
        rollback.intend().map_err(from_storage)?;
        Ok(Truncated::Reopen)
    }

    /// Writes the documents that the rollback will take back into files.
    fn keep_lost_documents(&self, rollback: &Rollback<'_>) -> Outcome<()> {
        let Some(directory) = self.store.path() else { return Ok(()) };
        let mut date = format_iso8601(self.store.clock().now_ms() as i64).replace(':', "-");
        date.truncate(date.find(['.', 'Z']).unwrap_or(date.len()));
        let directory = directory.join("rollback");
        let mut kept = RollbackFiles { directory, date, paths: HashMap::new(), open: HashMap::new() };
        let (snapshot, mut records, mut newest) = (self.store.snapshot(), rollback.records(), Vec::new());
        while let Some(record) = records.next_record()? {
            for effect in record.effects {
                let Effect::PutRecord { keyspace, record, location, document, .. } = effect else { continue };
                let collection = self.collections.read().with_records(keyspace).cloned();
                let is_shared =
                    |collection: &Collection| collection.namespace().database() != Namespace::OPLOG_DATABASE;
                let Some(collection) = collection.filter(|collection| is_shared(collection)) else { continue };
                // Older versions were replaced by clients and would have been lost in any case, so only the newest is
                // kept.
                if is_newest(&snapshot, (keyspace, record, location), &mut newest)? {
                    kept.add(&collection, document)?;
                }
            }
        }
        kept.sync()
    }
}

/// Whether a view still has this version of a record.
fn is_newest(view: &dyn View, version: (KeyspaceId, RecordId, Location), into: &mut Vec<u8>) -> Outcome<bool> {
    let (keyspace, record, location) = version;
    Ok(view.record(keyspace, record, into)?.is_some_and(|newest| newest.position == location.position))
}

impl RollbackFiles {
    /// Adds a document of a collection.
    fn add(&mut self, collection: &Collection, document: &[u8]) -> Outcome<()> {
        let RollbackFile { path, file } = self.file_of(collection)?;
        file.write_all(document).map_err(|error| StorageError::io(path, error))
    }

    fn file_of(&mut self, collection: &Collection) -> Outcome<&mut RollbackFile> {
        let keyspace = collection.records();
        if self.open.len() >= OPEN_MAX && !self.open.contains_key(&keyspace) {
            self.sync()?;
        }
        let new = match self.open.entry(keyspace) {
            Entry::Occupied(known) => return Ok(known.into_mut()),
            Entry::Vacant(new) => new,
        };
        let (path, file) = match self.paths.get(&keyspace) {
            Some(path) => {
                let mut file = files::open_to_write(path)?;
                file.seek(SeekFrom::End(0)).map_err(|error| StorageError::io(path, error))?;
                (path.clone(), file)
            }
            None => {
                let directory = self.directory.join(uuid_text(collection.uuid));
                make_directory(&directory)?;
                // Several rollbacks may begin in one second, so the name has a number too.
                let path = |number: u32| directory.join(format!("removed.{}.{number}.bson", self.date));
                let path = (0..u32::MAX).map(path).find(|path| !path.exists()).expect("some number is free");
                let file = files::create(&path)?;
                self.paths.insert(keyspace, path.clone());
                (path, file)
            }
        };
        Ok(new.insert(RollbackFile { path, file: BufWriter::new(file) }))
    }

    /// Makes the files durable, and closes them.
    fn sync(&mut self) -> Outcome<()> {
        for (_, RollbackFile { path, mut file }) in self.open.drain() {
            let synced = file.flush().and_then(|()| file.get_ref().sync_all());
            synced.map_err(|error| StorageError::io(&path, error))?;
            files::sync_directory(path.parent().expect("it is in its collection's directory"))?;
        }
        Ok(())
    }
}
