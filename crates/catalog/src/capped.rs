//! Capped collections: an insert that exceeds the limit deletes the oldest documents in the same batch.
//!
//! Source: MongoDB manual, "Capped Collections".

use crate::cap::Cap;
use crate::commit::Attempt;
use crate::effects::Effects;
use crate::index_keys::{index_keys, stored_key};
use crate::write::{key_stripe, record_stripe};
use crate::{Collection, Index, from_storage, notes};
use bunko_bson::DocumentRef;
use bunko_errors::Result;
use bunko_operation::OperationSource;
use bunko_store::{Direction, Location, RecordId, RecordRange, StripeNumbers, View};
use std::sync::Arc;

/// Maximum number of documents that one insert deletes; the next inserts continue.
const VICTIMS_MAX: usize = 4096;

/// A document to be deleted, as it was found.
struct Victim {
    record: RecordId,
    location: Location,
    document: Vec<u8>,
}

/// The documents that an insert deletes, oldest first.
#[derive(Default)]
pub(crate) struct Victims(Vec<Victim>);

impl Victims {
    /// Finds the documents that a document of `document_bytes` pushes out: all, if it exceeds the limit alone, but at
    /// most [`VICTIMS_MAX`]. The caller holds the collection's `capped_order`.
    pub fn find(
        collection: &Collection,
        cap: Cap,
        document_bytes: usize,
        operation: &dyn OperationSource,
    ) -> Result<Self> {
        let mut victims = Self::default();
        let (mut documents, mut bytes) = (collection.count() + 1, collection.data_bytes() + document_bytes as u64);
        if cap.holds(documents, bytes) {
            return Ok(victims);
        }
        let snapshot = collection.snapshot();
        let mut cursor = snapshot.records(collection.records, RecordRange::ALL, Direction::Forward);
        while !cap.holds(documents, bytes) && victims.0.len() < VICTIMS_MAX {
            let Some((record, location, document)) = cursor.next().map_err(from_storage)? else { break };
            operation.operation().work(1 + document.len() / 64)?;
            documents -= 1;
            bytes = bytes.saturating_sub(document.len() as u64);
            victims.0.push(Victim { record, location, document: document.to_vec() });
        }
        Ok(victims)
    }

    /// Adds the lock stripes of the victims and of their unique keys.
    pub fn add_stripes(
        &self,
        collection: &Collection,
        indexes: &[Arc<Index>],
        stripes: &mut StripeNumbers,
    ) -> Result<()> {
        for victim in &self.0 {
            stripes.push(record_stripe(collection.records, victim.record));
            // A writer that removes a key from an index being built must know whose key it is.
            for index in indexes.iter().filter(|index| index.is_unique && index.build().is_some()) {
                for key in keys(index, victim)? {
                    stripes.push(key_stripe(index.keyspace, &key));
                }
            }
        }
        Ok(())
    }

    /// Deletes the documents that were found, except those that another writer has changed since. The caller holds the
    /// locks.
    pub fn put_deletes<'a>(&self, attempt: &Attempt<'a>, effects: &mut Effects<'_, 'a>) -> Result<()> {
        let (collection, mut current) = (attempt.collection, Vec::new());
        for victim in &self.0 {
            let found = attempt.latest.record(collection.records, victim.record, &mut current).map_err(from_storage)?;
            if found != Some(victim.location) {
                continue;
            }
            for index in attempt.indexes {
                for key in keys(index, victim)? {
                    effects.delete_key(index, &key, victim.record)?;
                }
            }
            effects.note_changed(victim.record);
            notes::put_deleted(&mut effects.batch, collection, &victim.document);
            effects.batch.delete_record(collection.records, victim.record, victim.location);
        }
        Ok(())
    }
}

fn keys(index: &Index, victim: &Victim) -> Result<Vec<Vec<u8>>> {
    let keys = match index_keys(index, DocumentRef::trusted(&victim.document)) {
        Ok(keys) => keys.keys,
        // A document without valid keys was never added to an index that is still being built.
        Err(_) if index.build().is_some() => return Ok(Vec::new()),
        Err(failure) => return Err(failure),
    };
    let stored = keys.into_iter().map(|mut key| {
        stored_key(index, &mut key, victim.record);
        key
    });
    Ok(stored.collect())
}
