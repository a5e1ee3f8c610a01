//! Keys of the tree: the keyspace, then the record id or the index key.

use bunko_store::KeyspaceId;
use std::ops::Bound;

pub(crate) const KEYSPACE_BYTES: usize = 4;

/// Maximum number of bytes of a key beside its keyspace: the tree has 16 bits for the length, and panics beyond it.
const BOUND_BYTES_MAX: usize = u16::MAX as usize - KEYSPACE_BYTES;

/// A range of keys within a keyspace.
pub(crate) type Range = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Calls `with` with a key in the tree's form. Keys of usual length are assembled on the stack.
pub(crate) fn with_key<R>(keyspace: KeyspaceId, key: &[u8], with: impl FnOnce(&[u8]) -> R) -> R {
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

/// The range of all keys of a keyspace, in the tree's form.
pub(crate) fn whole(keyspace: KeyspaceId) -> Range {
    let start = keyspace.0.to_be_bytes().to_vec();
    let end = match keyspace.0.checked_add(1) {
        Some(next) => Bound::Excluded(next.to_be_bytes().to_vec()),
        None => Bound::Unbounded,
    };
    (Bound::Included(start), end)
}

/// The range of all keys of adjacent keyspaces, in the tree's form.
pub(crate) fn all_of(keyspaces: &[KeyspaceId]) -> Range {
    match keyspaces {
        [first, .., last] => (whole(*first).0, whole(*last).1),
        [only] => whole(*only),
        [] => (Bound::Unbounded, Bound::Excluded(Vec::new())),
    }
}

/// A range of a keyspace, in the tree's form. A bound may be longer than any key.
pub(crate) fn in_tree(keyspace: KeyspaceId, (start, end): Range) -> Range {
    let all = whole(keyspace);
    let prefixed = |key: &[u8]| [keyspace.0.to_be_bytes().as_slice(), key].concat();
    // A bound is cut off at the longest key. A shorter key is below the whole bound if it is below or at that part.
    let start = match start {
        Bound::Included(key) | Bound::Excluded(key) if key.len() > BOUND_BYTES_MAX => {
            Bound::Excluded(prefixed(&key[..BOUND_BYTES_MAX]))
        }
        start => start.map(|key| prefixed(&key)),
    };
    let end = match end {
        Bound::Included(key) | Bound::Excluded(key) if key.len() > BOUND_BYTES_MAX => {
            Bound::Included(prefixed(&key[..BOUND_BYTES_MAX]))
        }
        end => end.map(|key| prefixed(&key)),
    };
    (or(start, all.0), or(end, all.1))
}

fn or(bound: Bound<Vec<u8>>, fallback: Bound<Vec<u8>>) -> Bound<Vec<u8>> {
    if bound == Bound::Unbounded { fallback } else { bound }
}
