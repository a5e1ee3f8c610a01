//! Index keys that are too long for the trees. They are replaced by their first bytes and a hash of all bytes.
//!
//! A shortened key is one byte longer than any whole key, so it never equals one. Two shortened keys are equal if the
//! hashes are, that is, if the whole keys are. Among keys with equal first bytes, their order is that of the hashes,
//! which is meaningless: an index that has had such a key records it
//! ([`KeyTypes::has_long_keys`](crate::KeyTypes::has_long_keys)), and plans do not use the index for results that only
//! whole keys give.

use sha2::{Digest, Sha256};

/// Longest key that is stored whole, in bytes, without the record id.
pub(crate) const KEY_BYTES_MAX: usize = 60_000;

const HASH_BYTES: usize = 32;

/// Bytes of a longer key that are kept. Keys that differ within them still sort in the right order.
pub const KEY_PREFIX_BYTES: usize = KEY_BYTES_MAX + 1 - HASH_BYTES;

/// Replaces a key that is too long by its short form. Returns whether it did.
pub fn shorten_key(key: &mut Vec<u8>) -> bool {
    shorten_to(key, KEY_BYTES_MAX)
}

/// Replaces a part of a key that is longer than `bytes_max` by a short form of `bytes_max + 1` bytes. Returns whether
/// it did.
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
