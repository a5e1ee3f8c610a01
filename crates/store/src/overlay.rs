//! What a transaction has done so far, before anybody else sees it: effects by what they change, over the state that the
//! transaction began with.
//!
//! Whatever a key was put or a record written how often, one effect of it is left, as an engine wants it: two effects of
//! one log record never concern the same key. What a read began with stays as it was while the transaction goes on, so
//! that a statement does not meet its own changes.
//!
//! **Invariant:** only batches that change documents come in, and what they replace or delete is what the view shows.

mod cursor;
mod net;
mod view;

pub use net::{Net, part_with_room};

use crate::{Batch, Effect, KeyspaceId, Location, Lsn, Presence, RecordId, Snapshot};
use bunko_versions::{HeadKey, Known, OpenViews, VersionedMap, Views};
use byteview::ByteView;
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a record takes beside its document, in memory and, less, in the log.
const RECORD_BYTES: u64 = 192;
/// What a key takes beside its bytes.
const KEY_BYTES: u64 = 160;
/// Documents that are in no log yet have places from here on, which no log gets to.
const OWN_POSITIONS: u64 = 1 << 63;

/// Holds usual keys without an allocation.
type LayerKey = HeadKey<ByteView>;

/// Effects of one transaction, which one thread at a time adds to.
#[derive(Default)]
pub struct Overlay {
    keyspaces: RwLock<FxHashMap<KeyspaceId, Arc<Layer>>>,
    /// How many batches came in: the LSN of versions.
    moment: AtomicU64,
    /// Reads that are open, by the moment that they see.
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

/// A document as the transaction wrote it.
#[derive(Clone)]
struct Written {
    document: Arc<[u8]>,
    location: Location,
}

/// How things were before the transaction changed them.
#[derive(Default)]
struct Before {
    /// Where records stood; nothing for those that it inserted.
    locations: BTreeMap<RecordId, Option<Location>>,
    /// Whether keys were there.
    keys: BTreeMap<LayerKey, bool>,
    /// The primary keys of records that it wrote.
    primary_keys: FxHashMap<RecordId, (KeyspaceId, LayerKey)>,
}

impl Overlay {
    /// What it takes in memory, in bytes, about; its record in the log takes less.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether the transaction has written or deleted a record.
    pub fn knows_record(&self, keyspace: KeyspaceId, record: RecordId) -> bool {
        self.layer(keyspace).is_some_and(|layer| layer.before.lock().locations.contains_key(&record))
    }

    /// Whether it has written or deleted any record of a record store.
    pub fn has_records(&self, keyspace: KeyspaceId) -> bool {
        self.layer(keyspace).is_some_and(|layer| layer.records.key_count() > 0)
    }

    /// Whether it has done nothing.
    pub fn is_empty(&self) -> bool {
        self.keyspaces.read().is_empty()
    }

    /// Takes in what a batch does, which is not committed otherwise; notes are left out.
    /// # Panics
    /// Where the batch does more than to change documents.
    pub fn absorb(&self, batch: &Batch<'_>) {
        // It lives as long as the transaction, which counts it itself, and not its operations.
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

    /// `presence` says whether a key that the overlay does not know is in the snapshot.
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
    /// This state with what the transaction has done up to now, whatever it does later.
    #[must_use]
    pub fn with(self: &Arc<Self>, overlay: &Arc<Overlay>) -> Self {
        Self { lsn: self.lsn(), view: Box::new(view::Overlaid::new(self, overlay)), _pin: None }
    }
}

/// The LSN of a change that is in no log yet: there is nothing to wait for.
pub const NOT_LOGGED: Lsn = Lsn(0);
