//! Keys of the one tree: the keyspace, then the record id or the index key.

use bunko_store::{KeyRange, KeyspaceId, RecordId, RecordRange};
use lsm_tree::UserKey;
use std::ops::Bound;

pub(crate) const KEYSPACE_BYTES: usize = 4;

/// A record's key: twelve bytes, which the tree keeps without an allocation.
pub(crate) fn of_record(keyspace: KeyspaceId, record: RecordId) -> [u8; KEYSPACE_BYTES + 8] {
    let mut key = [0; KEYSPACE_BYTES + 8];
    key[..KEYSPACE_BYTES].copy_from_slice(&keyspace.0.to_be_bytes());
    key[KEYSPACE_BYTES..].copy_from_slice(&record.0.to_be_bytes());
    key
}

/// The record id in a record's key.
pub(crate) fn record_of(key: &[u8]) -> Option<RecordId> {
    Some(RecordId(u64::from_be_bytes(key.get(KEYSPACE_BYTES..)?.try_into().ok()?)))
}

/// Runs `with` on an index key in the tree's form; keys of usual length are assembled on the stack.
pub(crate) fn with_index_key<R>(keyspace: KeyspaceId, key: &[u8], with: impl FnOnce(&[u8]) -> R) -> R {
    let mut short = [0; 64];
    let length = KEYSPACE_BYTES + key.len();
    if let Some(room) = short.get_mut(..length) {
        room[..KEYSPACE_BYTES].copy_from_slice(&keyspace.0.to_be_bytes());
        room[KEYSPACE_BYTES..].copy_from_slice(key);
        with(room)
    } else {
        with(&[&keyspace.0.to_be_bytes(), key].concat())
    }
}

/// An index key in the tree's own type.
pub(crate) fn of_index(keyspace: KeyspaceId, key: &[u8]) -> UserKey {
    with_index_key(keyspace, key, |key| UserKey::from(key))
}

type TreeRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Everything in a keyspace.
pub(crate) fn whole(keyspace: KeyspaceId) -> TreeRange {
    let start = keyspace.0.to_be_bytes().to_vec();
    let end = match keyspace.0.checked_add(1) {
        Some(next) => Bound::Excluded(next.to_be_bytes().to_vec()),
        None => Bound::Unbounded,
    };
    (Bound::Included(start), end)
}

pub(crate) fn record_range(keyspace: KeyspaceId, range: RecordRange) -> TreeRange {
    let all = whole(keyspace);
    let bound = |bound: Bound<RecordId>| bound.map(|record| of_record(keyspace, record).to_vec());
    (or(bound(range.start), all.0), or(bound(range.end), all.1))
}

pub(crate) fn key_range(keyspace: KeyspaceId, range: KeyRange) -> TreeRange {
    let all = whole(keyspace);
    let bound = |bound: Bound<Vec<u8>>| bound.map(|key| [keyspace.0.to_be_bytes().as_slice(), &key].concat());
    (or(bound(range.start), all.0), or(bound(range.end), all.1))
}

fn or(bound: Bound<Vec<u8>>, fallback: Bound<Vec<u8>>) -> Bound<Vec<u8>> {
    if bound == Bound::Unbounded { fallback } else { bound }
}
