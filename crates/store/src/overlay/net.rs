//! The net changes of a transaction: one effect for each record and key.

use super::{Layer, LayerKey, Overlay};
use crate::{Batch, KeyspaceId, Location, Presence, RecordId};
use std::collections::HashSet;
use std::sync::Arc;

/// The effects that a transaction's commit puts into batches, which borrow the documents.
pub struct NetEffects {
    records: Vec<NetRecord>,
    keys: Vec<NetKey>,
}

struct NetRecord {
    keyspace: KeyspaceId,
    record: RecordId,
    document: Option<Arc<[u8]>>,
    /// Location before the transaction.
    before: Option<Location>,
    primary: Option<(KeyspaceId, LayerKey, Presence)>,
}

struct NetKey {
    keyspace: KeyspaceId,
    key: LayerKey,
    /// `None` for a deletion.
    record: Option<RecordId>,
    was_there: bool,
}

impl Overlay {
    /// The net changes of the transaction.
    pub fn net(&self) -> NetEffects {
        let mut layers: Vec<(KeyspaceId, Arc<Layer>)> =
            self.keyspaces.read().iter().map(|(keyspace, layer)| (*keyspace, Arc::clone(layer))).collect();
        layers.sort_unstable_by_key(|(keyspace, _)| *keyspace);
        let mut net = NetEffects { records: Vec::new(), keys: Vec::new() };
        let mut primary_keyspaces = HashSet::new();
        for (keyspace, layer) in &layers {
            self.add_records(*keyspace, layer, &mut net, &mut primary_keyspaces);
        }
        for (keyspace, layer) in &layers {
            let before = layer.before.lock();
            layer.keys.for_each(|key, newest| {
                let record = newest.value().copied();
                let was_there = before.keys.get(key).copied().unwrap_or(false);
                // A primary key that leads to a record is put together with the record.
                let is_with_record = record.is_some() && primary_keyspaces.contains(keyspace);
                if !is_with_record && (record.is_some() || was_there) {
                    net.keys.push(NetKey { keyspace: *keyspace, key: key.clone(), record, was_there });
                }
            });
        }
        net
    }

    fn add_records(
        &self,
        keyspace: KeyspaceId,
        layer: &Layer,
        net: &mut NetEffects,
        primary_keyspaces: &mut HashSet<KeyspaceId>,
    ) {
        let before = layer.before.lock();
        layer.records.for_each(|record, newest| {
            let location = before.locations.get(record).copied().flatten();
            let document = newest.value().map(|written| Arc::clone(&written.document));
            if document.is_none() && location.is_none() {
                return;
            }
            let primary = before.primary_keys.get(record).filter(|_| document.is_some()).map(|(keys, key)| {
                primary_keyspaces.insert(*keys);
                let presence = match location {
                    Some(_) => Presence::Moved,
                    None if self.was_there(*keys, key) => Presence::Taken,
                    None => Presence::New,
                };
                (*keys, key.clone(), presence)
            });
            net.records.push(NetRecord { keyspace, record: *record, document, before: location, primary });
        });
    }

    fn was_there(&self, keyspace: KeyspaceId, key: &LayerKey) -> bool {
        self.layer(keyspace).is_some_and(|layer| layer.before.lock().keys.get(key).copied().unwrap_or(false))
    }
}

impl NetEffects {
    /// Whether no changes are left.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.keys.is_empty()
    }

    /// Puts the changes into batches, beginning a new batch whenever the last has `part_bytes` or more. `parts` may
    /// have batches already.
    pub fn put_into<'n>(&'n self, parts: &mut Vec<Batch<'n>>, part_bytes: usize) {
        for NetRecord { keyspace, record, document, before, primary } in &self.records {
            let batch = part_with_room(parts, part_bytes);
            match (document, before) {
                (Some(document), None) => batch.insert_record(*keyspace, *record, &**document),
                (Some(document), Some(before)) => batch.replace_record(*keyspace, *record, &**document, *before),
                (None, Some(before)) => batch.delete_record(*keyspace, *record, *before),
                (None, None) => {}
            }
            if let Some((keys, key, presence)) = primary {
                batch.put_primary_key(*keys, key, *record, *presence);
            }
        }
        for NetKey { keyspace, key, record, was_there } in &self.keys {
            let batch = part_with_room(parts, part_bytes);
            match record {
                None => batch.delete_key(*keyspace, key),
                Some(record) if *was_there => batch.take_key(*keyspace, key, *record),
                Some(record) => batch.put_key(*keyspace, key, *record),
            }
        }
    }
}

/// The last of the batches, or a new one if that has `part_bytes` or more.
pub fn part_with_room<'p, 'd>(parts: &'p mut Vec<Batch<'d>>, part_bytes: usize) -> &'p mut Batch<'d> {
    if parts.last().is_none_or(|last| !last.is_empty() && last.len_bytes() >= part_bytes) {
        parts.push(Batch::new());
    }
    parts.last_mut().expect("one at least")
}
