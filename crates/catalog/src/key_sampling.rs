//! Makes samples of index keys.
//!
//! All keys of a small index are walked. For a larger index, documents are read at random places, each document as
//! likely as every other, and their keys make the sample. For some of these keys the next key of the index is read too:
//! it shows whether the value ends there, and so the number of distinct values is known without reading all keys.
//!
//! The first query that has to choose between indexes makes a sample of each. Later samples are made in the background,
//! when the log has grown by a part of the collection's size since. So writers do nothing for samples, and a collection
//! whose queries have one index to use has none.
//!
//! Rejected: a counter of changes for each index, for which every write would pay; a walk of all keys of a large index,
//! which reads more than the queries that it serves.

use crate::index_keys::{keys_for, own_part};
use crate::key_sample::{BYTES_MAX, Distinct, KEYS_MAX, KeySample, MadeAt, Method, SampledIndex};
use crate::{Collection, Index, RandomPlaces, from_storage};
use bunko_bson::DocumentRef;
use bunko_errors::Result;
use bunko_heap::Uncounted;
use bunko_operation::{OperationContext, Purpose, ServerMemory};
use bunko_store::{Direction, KeyRange, RecordId, View};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of keys of an index that is walked whole.
const WALKED_MAX: u64 = 16_000;
/// Number of documents whose keys make a sample of a larger index.
const RECORDS_MAX: usize = KEYS_MAX;
/// Maximum number of places that are drawn to find these documents.
const DRAWS_MAX: usize = 4 * RECORDS_MAX;
/// Maximum number of keys of the drawn documents, before some of them are kept.
const DRAWN_KEYS_MAX: usize = 16 * KEYS_MAX;
/// Number of keys whose successors are looked at.
const SUCCESSORS: usize = 256;
/// A sample is renewed when the log has grown by the collection's size divided by this, and by `LOG_BYTES_MIN`.
const RENEWED_PART: u64 = 5;
const LOG_BYTES_MIN: u64 = 1 << 20;

/// Whether a thread is renewing a sample; one at a time does.
static IS_RENEWING: AtomicBool = AtomicBool::new(false);

/// Marks that a thread renews a sample while it exists.
struct Renewing;

impl Drop for Renewing {
    fn drop(&mut self) {
        IS_RENEWING.store(false, Ordering::Release);
    }
}

impl Collection {
    /// The sample of an index's keys. Makes the first sample at once and renews an old one in the background. `None` if
    /// there is no memory for a sample, or if the index has too few of the collection's documents to be sampled.
    /// # Errors
    /// Failures of the storage, and as `OperationContext::check`.
    pub fn index_sample(
        self: &Arc<Self>,
        index: &Arc<Index>,
        operation: &OperationContext,
    ) -> Result<Option<SampledIndex>> {
        let sample = match index.sample() {
            Some(sample) => {
                if self.is_worn(&sample) {
                    self.renew_sample(index, operation.server_memory());
                }
                sample
            }
            None => {
                let Some(sample) = self.take_sample(index, operation, &operation.server_memory())? else {
                    return Ok(None);
                };
                let sample = Arc::new(sample);
                index.set_sample(Arc::clone(&sample));
                sample
            }
        };
        if !sample.is_useful() {
            return Ok(None);
        }
        let entries = self.index_statistics(index).entries;
        let records = self.next_record().0.saturating_sub(sample.made_at.record_ids);
        let keys_per_record = entries as f64 / self.count().max(1) as f64;
        let added = (records as f64 * keys_per_record.max(1.0)) as u64;
        Ok(Some(SampledIndex { sample, entries, added }))
    }

    fn is_worn(&self, sample: &KeySample) -> bool {
        let grown = self.store.visible_end().0.saturating_sub(sample.made_at.log_bytes);
        grown > LOG_BYTES_MIN && grown > self.data_bytes() / RENEWED_PART
    }

    fn renew_sample(self: &Arc<Self>, index: &Arc<Index>, server: Arc<ServerMemory>) {
        if IS_RENEWING.swap(true, Ordering::AcqRel) {
            return;
        }
        let (renewing, collection, index) = (Renewing, Arc::downgrade(self), Arc::clone(index));
        let renew = move || {
            let _renewing = renewing;
            let Some(collection) = collection.upgrade() else { return };
            let operation = OperationContext::unlimited();
            operation.seed(collection.store.visible_end().0);
            match collection.take_sample(&index, &operation, &server) {
                Ok(Some(sample)) => index.set_sample(Arc::new(sample)),
                Ok(None) => {}
                Err(failure) => {
                    tracing::warn!(target: "INDEX", id = 150, index = %index.name, error = %failure.message(), "An index's keys could not be sampled: the older sample stays in use");
                }
            }
        };
        if let Err(error) = std::thread::Builder::new().name("key-sample".to_owned()).spawn(renew) {
            tracing::warn!(target: "INDEX", id = 151, %error, "No thread could be started to sample an index's keys: the older sample stays in use");
        }
    }

    /// Makes a sample; `None` if there is no memory for it.
    fn take_sample(
        &self,
        index: &Index,
        operation: &OperationContext,
        server: &Arc<ServerMemory>,
    ) -> Result<Option<KeySample>> {
        let Some(drawn) = server.draw(BYTES_MAX, Purpose::Work) else { return Ok(None) };
        let made_at = MadeAt {
            entries: self.index_statistics(index).entries,
            log_bytes: self.store.visible_end().0,
            record_ids: self.next_record().0,
            version: index.sample().map_or(0, |before| before.version() + 1),
        };
        let snapshot = self.store.snapshot();
        let sampling = Sampling { collection: self, index, operation, view: &snapshot, made_at };
        let sample = if made_at.entries <= WALKED_MAX { sampling.walked()? } else { sampling.drawn()? };
        Ok(Some(sample.counted_by(drawn)))
    }
}

/// State while one sample is made.
struct Sampling<'s> {
    collection: &'s Collection,
    index: &'s Index,
    operation: &'s OperationContext,
    view: &'s dyn View,
    made_at: MadeAt,
}

impl Sampling<'_> {
    fn distinct(&self) -> Distinct {
        Distinct::new(self.index.fields.iter().map(|field| field.direction))
    }

    /// Samples every n-th of all keys, with the n that keeps at most [`KEYS_MAX`].
    fn walked(self) -> Result<KeySample> {
        let step = self.made_at.entries.div_ceil(KEYS_MAX as u64).max(1);
        let mut distinct = self.distinct();
        let (mut kept, mut last, mut entries) = (Vec::new(), Vec::new(), 0);
        let mut keys = self.view.keys(self.index.keyspace, KeyRange::ALL, Direction::Forward);
        while let Some((key, _)) = keys.next().map_err(from_storage)? {
            self.operation.work(1)?;
            let key = own_part(self.index, key);
            if entries > 0 {
                distinct.count(&last, Some(key));
            }
            if entries % step == step / 2 && kept.len() < KEYS_MAX {
                kept.push(key.to_vec());
            }
            last.clear();
            last.extend_from_slice(key);
            entries += 1;
        }
        if entries > 0 {
            distinct.count(&last, None);
        }
        Ok(packed(&kept, Method::Walked, &distinct, MadeAt { entries, ..self.made_at }))
    }

    /// Samples the keys of documents at random places.
    fn drawn(self) -> Result<KeySample> {
        let records = self.collection.records();
        let places = RandomPlaces::of(self.view, records)?;
        let (mut document, mut found) = (Vec::new(), 0);
        let mut keys: Vec<(Vec<u8>, RecordId)> = Vec::new();
        for _ in 0..DRAWS_MAX {
            if found == RECORDS_MAX || keys.len() >= DRAWN_KEYS_MAX {
                break;
            }
            let record = places.draw(self.operation.random());
            self.operation.work(1 + document.len() / 64)?;
            if self.view.record(records, record, &mut document).map_err(from_storage)?.is_none() {
                continue;
            }
            found += 1;
            let own = keys_for(self.index, DocumentRef::trusted(&document), Some(self.operation))?.keys;
            keys.extend(own.into_iter().map(|key| (key, record)));
        }
        keys.sort_unstable();
        let mut distinct = self.distinct();
        for (key, record) in keys.iter().step_by(keys.len().div_ceil(SUCCESSORS).max(1)) {
            self.operation.work(1)?;
            let mut stored = key.clone();
            if self.index.ends_with_record() {
                stored.extend_from_slice(&record.0.to_be_bytes());
            }
            let range = KeyRange { start: Bound::Excluded(stored), end: Bound::Unbounded };
            let mut cursor = self.view.keys(self.index.keyspace, range, Direction::Forward);
            let next = cursor.next().map_err(from_storage)?;
            distinct.count(key, next.map(|(next, _)| own_part(self.index, next)));
        }
        let step = keys.len().div_ceil(KEYS_MAX).max(1);
        let kept: Vec<Vec<u8>> = keys.into_iter().step_by(step).map(|(key, _)| key).collect();
        Ok(packed(&kept, Method::Drawn, &distinct, self.made_at))
    }
}

/// Packs the kept keys. The sample serves all queries, so its memory does not count for the operation.
fn packed(kept: &[Vec<u8>], method: Method, distinct: &Distinct, made_at: MadeAt) -> KeySample {
    let _uncounted = Uncounted::begin();
    KeySample::new(kept.iter().map(Vec::as_slice), method, distinct, made_at)
}
