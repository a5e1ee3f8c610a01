//! The uncommitted changes of a transaction: effects by record and key, over the state that the transaction began with.
//!
//! However often the transaction writes a record or a key, one effect on it is left in the end, as engines require: no
//! two effects of one log record concern the same key. A read keeps seeing the state at which it began while the
//! transaction goes on, so that a statement does not meet its own changes.
//!
//! **Invariant:** only batches that change documents are added, and the documents that they replace or delete are those
//! that the view shows.

mod cursor;
mod net;
mod view;

pub use net::{NetEffects, part_with_room};

use crate::{Batch, Effect, KeyspaceId, Location, Lsn, Presence, RecordId, Snapshot};
use bunko_versions::{HeadKey, Known, OpenViews, VersionedMap, Views};
use byteview::ByteView;
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that a record takes beside its document in memory; in the log it takes less.
const RECORD_BYTES: u64 = 192;
/// Bytes that a key takes beside its own bytes.
const KEY_BYTES: u64 = 160;
/// Documents that are not in the log yet get positions from here on, which no log reaches.
const OWN_POSITIONS: u64 = 1 << 63;

/// Stores keys of usual length without an allocation.
type LayerKey = HeadKey<ByteView>;

/// Effects of one transaction. One thread at a time adds to them.
#[derive(Default)]
pub struct Overlay {
    keyspaces: RwLock<FxHashMap<KeyspaceId, Arc<Layer>>>,
    /// Number of batches that were added; it serves as the versions' LSN.
    moment: AtomicU64,
    /// Open reads, by the moment that they see.
    reads: OpenViews,
    bytes: AtomicU64,
    next_position: AtomicU64,
}

/// One keyspace's effects.
#[derive(Default)]
struct Layer {
    records: Arc<VersionedMap<RecordId, Written>>,
    keys: Arc<VersionedMap<LayerKey, RecordId>>,
    before: Mutex<Before>,
}

/// A document that the transaction wrote.
#[derive(Clone)]
struct Written {
    document: Arc<[u8]>,
    location: Location,
}

/// The state of records and keys before the transaction changed them.
#[derive(Default)]
struct Before {
    /// Previous locations of records; `None` for records that the transaction inserted.
    locations: BTreeMap<RecordId, Option<Location>>,
    /// Whether keys existed.
    keys: BTreeMap<LayerKey, bool>,
    /// Primary keys of records that the transaction wrote.
    primary_keys: FxHashMap<RecordId, (KeyspaceId, LayerKey)>,
}

impl Overlay {
    /// Approximate bytes in memory; the transaction's record in the log takes less.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether the transaction has written or deleted the record.
    pub fn knows_record(&self, keyspace: KeyspaceId, record: RecordId) -> bool {
        self.layer(keyspace).is_some_and(|layer| layer.before.lock().locations.contains_key(&record))
    }

    /// Whether the transaction has written or deleted any record of a record store.
    pub fn has_records(&self, keyspace: KeyspaceId) -> bool {
        self.layer(keyspace).is_some_and(|layer| layer.records.key_count() > 0)
    }

    /// Whether the transaction has changed nothing.
    pub fn is_empty(&self) -> bool {
        self.keyspaces.read().is_empty()
    }

    /// Adds the effects of a batch, which is committed only with the transaction. Notes are left out.
    /// # Panics
    /// If the batch does anything but change documents.
    pub fn absorb(&self, batch: &Batch<'_>) {
        // The effects live as long as the transaction, which counts them itself, so they do not count for the
        // operation.
        let _uncounted = bunko_heap::Uncounted::begin();
        let moment = self.moment.load(Ordering::Relaxed);
        let reads = self.reads.now(|| moment);
        let mut last = None;
        for effect in batch.effects(0) {
            match effect {
                Effect::PutRecord { keyspace, record, location, document, replaced } => {
                    let position = OWN_POSITIONS + self.next_position.fetch_add(1, Ordering::Relaxed);
                    let written =
                        Written { document: Arc::from(document), location: Location { position, ..location } };
                    self.put_record((keyspace, record), moment, Some(written), replaced, reads);
                    last = Some(keyspace);
                }
                Effect::DeleteRecord { keyspace, record, replaced } => {
                    self.put_record((keyspace, record), moment, None, Some(replaced), reads);
                }
                Effect::PutKey { keyspace, key, record, presence } => {
                    self.put_key((keyspace, key), moment, Some(record), presence, reads);
                }
                Effect::PutPrimaryKey { keyspace, key, record, presence, .. } => {
                    self.put_key((keyspace, key), moment, Some(record), presence, reads);
                    let records = last.expect("a primary key leads to the record put before it");
                    let layer = self.layer_or_new(records);
                    layer.before.lock().primary_keys.insert(record, (keyspace, LayerKey::from(key)));
                }
                Effect::DeleteKey { keyspace, key } => {
                    self.put_key((keyspace, key), moment, None, Presence::Moved, reads);
                }
                Effect::AdoptFile { .. }
                | Effect::PlaceRecord { .. }
                | Effect::CreateKeyspace { .. }
                | Effect::DropKeyspace { .. } => panic!("a transaction changes documents and nothing else"),
            }
        }
        self.moment.store(moment + 1, Ordering::Release);
    }

    fn put_record(
        &self,
        (keyspace, record): (KeyspaceId, RecordId),
        moment: u64,
        written: Option<Written>,
        replaced: Option<Location>,
        reads: Views<'_>,
    ) {
        let layer = self.layer_or_new(keyspace);
        let length = |written: &Written| written.document.len() as u64;
        let known = layer.records.get(&record, moment);
        let superseded_bytes = match &known {
            None => {
                layer.before.lock().locations.insert(record, replaced);
                0
            }
            Some(Known::Value(superseded)) => RECORD_BYTES + length(superseded),
            Some(Known::Deleted) => RECORD_BYTES,
        };
        let bytes = RECORD_BYTES + written.as_ref().map_or(0, length);
        drop(layer.records.put(record, moment, written, reads));
        self.bytes.fetch_add(bytes.wrapping_sub(superseded_bytes), Ordering::Relaxed);
    }

    /// Puts or removes a key at `moment`. `presence` says whether the snapshot has the key, for a key that the overlay
    /// does not know yet.
    fn put_key(
        &self,
        (keyspace, key): (KeyspaceId, &[u8]),
        moment: u64,
        record: Option<RecordId>,
        presence: Presence,
        reads: Views<'_>,
    ) {
        let layer = self.layer_or_new(keyspace);
        let key = LayerKey::from(key);
        if layer.keys.get(&key, moment).is_none() {
            self.bytes.fetch_add(KEY_BYTES + 2 * key.len() as u64, Ordering::Relaxed);
            layer.before.lock().keys.insert(key.clone(), presence != Presence::New);
        }
        drop(layer.keys.put(key, moment, record, reads));
    }

    fn layer(&self, keyspace: KeyspaceId) -> Option<Arc<Layer>> {
        self.keyspaces.read().get(&keyspace).cloned()
    }

    fn layer_or_new(&self, keyspace: KeyspaceId) -> Arc<Layer> {
        match self.layer(keyspace) {
            Some(layer) => layer,
            None => Arc::clone(self.keyspaces.write().entry(keyspace).or_default()),
        }
    }
}

impl Snapshot {
    /// This state together with the transaction's changes up to now; later changes are not visible.
    #[must_use]
    pub fn with(self: &Arc<Self>, overlay: &Arc<Overlay>) -> Self {
        Self { lsn: self.lsn(), view: Box::new(view::Overlaid::new(self, overlay)), _pin: None }
    }
}

/// The LSN of a change that is not in the log yet: no sync needs to be waited for.
pub const NOT_LOGGED: Lsn = Lsn(0);
