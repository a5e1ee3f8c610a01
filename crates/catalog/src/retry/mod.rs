//! Retryable writes: a client may send one again without having it done twice.
//!
//! A retryable write records which statements it did in the same log record as its changes, so that a crash keeps both
//! or neither. Usually this is a value that the store remembers for the session; the value of the next transaction
//! number replaces it. A statement with another outcome than [`Outcome::One`], or a later one of the same number,
//! leaves a small document in an internal record store, [`WRITE_HISTORIES`]. Documents of one number are replaced by
//! those of the next, so that each session has a few.
//!
//! A command with a `txnNumber` has its session to itself, and its [`RetryableWrite`] is the unit of work of its
//! operation. `Catalog::commit` finds it there and adds the record of statements to the batch. The command asks the
//! session's [`WriteHistory`] before each statement. A start reads all histories; those of ended sessions are removed.

mod commit;
mod history;
mod outcome;
mod record;
mod retryable_write;

pub(crate) use commit::commit_transaction;
pub use history::WriteHistory;
pub use outcome::{Did, Image, Outcome};
pub use retryable_write::{RetryableWrite, StatementNumbers};

use crate::{Catalog, from_storage};
use bunko_bson::{BinarySubtype, DocumentBuf, ValueRef};
use bunko_errors::Result;
use bunko_store::{Batch, Direction, KeyspaceId, RecordId, RecordRange, Store, View};
use foldhash::fast::RandomState;
use history::Told;
use parking_lot::Mutex;
use record::{SessionValue, WriteRecord};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// The record store of write histories. Collections and indexes never reach this number.
pub const WRITE_HISTORIES: KeyspaceId = KeyspaceId(u32::MAX);

/// A session's UUID.
pub type SessionUuid = [u8; 16];

/// The user digest of sessions without a user: the SHA-256 of no bytes.
/// Source: MongoDB manual, "Server Sessions".
pub const NOBODY: [u8; 32] = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27, 0xae, 0x41,
    0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

/// A session's name. Users may choose the same UUID, and each has a session of their own with it.
/// Source: MongoDB manual, "Server Sessions": a session's id is made of its UUID and a digest of its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionName {
    /// Its UUID.
    pub id: SessionUuid,
    /// The digest of the session's user; [`NOBODY`] if it has no user.
    pub user: [u8; 32],
}

impl SessionName {
    /// `{id, uid}`.
    pub fn to_document(self) -> DocumentBuf {
        DocumentBuf::new()
            .with("id", ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &self.id })
            .with("uid", ValueRef::Binary { subtype: BinarySubtype::GENERIC, bytes: &self.user })
    }
}

/// Write histories by session.
pub type WriteHistories = HashMap<SessionName, WriteHistory, RandomState>;

/// Records and values that one batch deletes at most.
const DELETES_MAX: usize = 1000;

/// The write histories that a catalog starts with, and the counter for new ones.
#[derive(Default)]
pub(crate) struct HistoryRecords {
    /// The last number given to a record or a remembered value.
    last_record: AtomicU64,
    /// Histories found when the store was opened, until [`Catalog::take_write_histories`] takes them.
    loaded: Mutex<WriteHistories>,
}

impl HistoryRecords {
    /// Reads the write histories of an open store.
    pub(crate) fn load(store: &Store) -> Result<Self> {
        let mut loaded = WriteHistories::default();
        let mut last = 0;
        let snapshot = store.snapshot();
        let mut cursor = snapshot.records(WRITE_HISTORIES, RecordRange::ALL, Direction::Forward);
        while let Some((record, location, bytes)) = cursor.next().map_err(from_storage)? {
            let found = WriteRecord::decode(bytes)?;
            let told = Told::Record(record, location);
            loaded.entry(found.session).or_default().add_loaded(found.number, told, &found.ranges);
            last = record.0;
        }
        store.remembered(&mut |key, value| {
            if let Some(SessionValue { session, own, number, ranges }) = record::remembered(key, value) {
                loaded.entry(session).or_default().add_loaded(number, Told::Remembered { own }, &ranges);
                last = last.max(own);
            }
        });
        Ok(Self { last_record: AtomicU64::new(last), loaded: Mutex::new(loaded) })
    }

    /// Reads the write histories again.
    fn reload(&self, store: &Store) -> Result<()> {
        let Self { last_record, loaded } = Self::load(store)?;
        self.last_record.fetch_max(last_record.into_inner(), Ordering::Relaxed);
        *self.loaded.lock() = loaded.into_inner();
        Ok(())
    }

    fn next_record(&self) -> RecordId {
        RecordId(self.last_record.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

impl Catalog {
    /// Takes the write histories that were there when the catalog was opened. Further calls return none.
    pub fn take_write_histories(&self) -> WriteHistories {
        std::mem::take(&mut *self.history_records.loaded.lock())
    }

    /// Reads all write histories again, for a secondary that becomes primary: [`Self::take_write_histories`] then
    /// returns them.
    /// # Errors
    /// Failures of the storage; `InternalError` for a damaged record.
    pub fn reload_write_histories(&self) -> Result<()> {
        self.history_records.reload(&self.store)
    }

    /// Deletes the records and remembered values of sessions that are over.
    /// # Errors
    /// As `Store::commit`.
    pub fn forget_write_histories(
        &self,
        histories: impl IntoIterator<Item = (SessionName, WriteHistory)>,
    ) -> Result<()> {
        let mut batch = Batch::new();
        let mut count = 0;
        let commit = |batch: &Batch<'_>| self.store.commit(batch).map(drop).map_err(from_storage);
        for (session, history) in histories {
            if let Some(own) = history.own() {
                record::forget(&mut batch, (session, own));
                count += 1;
            }
            for (record, location) in history.into_records() {
                batch.delete_record(WRITE_HISTORIES, record, location);
                count += 1;
            }
            if count >= DELETES_MAX {
                commit(&std::mem::take(&mut batch))?;
                count = 0;
            }
        }
        if batch.is_empty() { Ok(()) } else { commit(&batch) }
    }
}
