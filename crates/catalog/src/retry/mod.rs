//! Writes that a client may send again without having them done twice.
//!
//! Such a write leaves word of which statements it did, in the same record of the log as what they changed: a crash keeps both or
//! none. As a rule that is a value which the store remembers by the session; the next number's takes its place. What returned
//! more than that it was done, or is not the first of its number, leaves a small document in a record store of the server's own,
//! [`WRITE_HISTORIES`]; those of one number are replaced by those of the next, so that there are a few for each session.

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

/// The record store of write histories: a number that no collection and no index gets to.
pub const WRITE_HISTORIES: KeyspaceId = KeyspaceId(u32::MAX);

/// A session's UUID.
pub type SessionUuid = [u8; 16];

/// The SHA-256 of nothing: whose sessions they are that are no user's.
/// Source: MongoDB manual, "Server Sessions".
pub const NOBODY: [u8; 32] = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27, 0xae, 0x41,
    0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

/// A session: users may choose the same UUID, and each has a session of their own by it.
/// Source: MongoDB manual, "Server Sessions": a session's id is made of its UUID and a digest of its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionName {
    /// Its UUID.
    pub id: SessionUuid,
    /// A digest of whose it is, [`NOBODY`] where there are no users.
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

/// Records and values that one batch gives up at most.
const DELETES_MAX: usize = 1000;

/// What the catalog knows of all write histories.
#[derive(Default)]
pub(crate) struct HistoryRecords {
    /// The number of the next record, or value, less one.
    last_record: AtomicU64,
    /// What was found at the start, until somebody takes it.
    loaded: Mutex<WriteHistories>,
}

impl HistoryRecords {
    /// Reads those of an open store.
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

    fn next_record(&self) -> RecordId {
        RecordId(self.last_record.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

impl Catalog {
    /// The write histories that were there when the catalog was opened, once.
    pub fn take_write_histories(&self) -> WriteHistories {
        std::mem::take(&mut *self.history_records.loaded.lock())
    }

    /// Deletes what sessions left that are over.
    /// # Errors
    /// Those of the storage.
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
