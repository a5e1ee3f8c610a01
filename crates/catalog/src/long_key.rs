//! Index keys that are longer than the trees take: their first bytes and a hash of all of them.
//!
//! A shortened key is one byte longer than any that stands whole, so that it is equal to none of these. Two shortened keys
//! are equal where the hashes are, that is where the whole keys are. Their order among the keys with the same first bytes
//! is that of the hashes, which says nothing: an index that has had such a key says so
//! ([`KeyTypes::has_long_keys`](crate::KeyTypes::has_long_keys)), and plans do not ask it for what only whole keys tell.

use crate::Index;
use crate::index_keys::own_part;
use bunko_store::RecordId;
use sha2::{Digest, Sha256};

/// Longest index key that stands whole, in bytes, without the record behind it.
pub(crate) const KEY_BYTES_MAX: usize = 60_000;

const HASH_BYTES: usize = 32;

/// How much of a longer key stands in its place: up to there its order is that of the whole key. Bytes.
pub const KEY_PREFIX_BYTES: usize = KEY_BYTES_MAX + 1 - HASH_BYTES;

/// Puts the short form of a key in its place, where it is longer than keys may be; whether it was.
pub fn shorten_key(key: &mut Vec<u8>) -> bool {
    shorten_to(key, KEY_BYTES_MAX)
}

/// The same of a part of keys that is to have its place within so many bytes, and one more where it was longer.
pub(crate) fn shorten_to(part: &mut Vec<u8>, bytes_max: usize) -> bool {
    if part.len() <= bytes_max {
        return false;
    }
    let hash = Sha256::digest(&part);
    part.truncate(bytes_max + 1 - HASH_BYTES);
    part.extend_from_slice(hash.as_slice());
    part.shrink_to_fit();
    true
}

/// Whether a stored key of an index, with the record where keys end with it, is one that was shortened.
pub fn is_shortened(index: &Index, key: &[u8]) -> bool {
    // Most keys are far shorter than that.
    key.len() > KEY_BYTES_MAX && key.len() >= size_of::<RecordId>() && own_part(index, key).len() > KEY_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_equal_keys_have_equal_short_forms() {
        let whole = vec![7; KEY_BYTES_MAX];
        let mut kept = whole.clone();
        assert!(!shorten_key(&mut kept) && kept == whole);

        let shortened = |last: u8, length: usize| {
            let mut key = vec![7; length];
            key[length - 1] = last;
            assert!(shorten_key(&mut key) && key.len() == KEY_BYTES_MAX + 1);
            key
        };
        let one = shortened(1, KEY_BYTES_MAX + 1);
        assert_eq!(one, shortened(1, KEY_BYTES_MAX + 1));
        assert_ne!(one, shortened(2, KEY_BYTES_MAX + 1));
        assert_ne!(one, shortened(1, KEY_BYTES_MAX + 2));
        assert_eq!(one[..KEY_PREFIX_BYTES], whole[..KEY_PREFIX_BYTES]);
    }
}
