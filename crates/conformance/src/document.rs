//! Documents and keys made from a few numbers, so that a model need not keep their bytes.

/// A longer document repeats itself after this many bytes, which is farther than LZ4 looks back.
const BLOCK_BYTES: usize = 70_000;

/// A document of `length` bytes, made from a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Document {
    /// Seed of the contents; an odd seed gives bytes that no compressor makes smaller.
    pub seed: u32,
    /// Length of the whole document in bytes; at least [`Document::LENGTH_MIN`].
    pub length: u32,
}

impl Document {
    /// Length of an empty document.
    pub const LENGTH_MIN: u32 = 5;

    /// The document's bytes, which begin and end as in BSON.
    pub fn bytes(self) -> Vec<u8> {
        let length = self.length.max(Self::LENGTH_MIN);
        let mut block = Vec::with_capacity(BLOCK_BYTES + 8);
        let mut state = u64::from(self.seed) << 32 | u64::from(self.length);
        while block.len() < BLOCK_BYTES.min(length as usize) {
            // Knuth's constants for a 64-bit linear congruential generator.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let [.., third, second, first] = state.to_be_bytes();
            if self.seed % 2 == 1 {
                block.extend_from_slice(&state.rotate_left(32).to_le_bytes());
            } else {
                block.extend_from_slice(&[b'v', b'a', b'l', b'u', b'e', first & 3, second & 1, third & 1]);
            }
        }
        let mut bytes = Vec::with_capacity(length as usize + block.len());
        bytes.extend_from_slice(&length.to_le_bytes());
        while bytes.len() < length as usize {
            bytes.extend_from_slice(&block);
        }
        bytes.truncate(length as usize - 1);
        bytes.push(0);
        bytes
    }
}

/// Lengths of keys in bytes: around the lengths that engines store in place, and around LMDB's largest key of 511. No
/// key string is empty, so engines need no place for an empty key.
const KEY_LENGTHS: [usize; 10] = [1, 2, 3, 5, 12, 64, 510, 511, 512, 2000];
/// Last bytes of keys; all bytes before are the same in all keys.
const KEY_ENDS: [u8; 5] = [b'k', 0, 1, 0x7f, 0xff];
/// Number of different keys.
pub const KEYS: u8 = (KEY_LENGTHS.len() * KEY_ENDS.len()) as u8;

/// The key with index `number` modulo [`KEYS`]; all of these keys differ.
pub fn key(number: u8) -> Vec<u8> {
    let number = usize::from(number % KEYS);
    let (length, end) = (KEY_LENGTHS[number % KEY_LENGTHS.len()], KEY_ENDS[number / KEY_LENGTHS.len()]);
    let mut key = vec![b'k'; length];
    key[length - 1] = end;
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn keys_differ() {
        assert_eq!((0..KEYS).map(key).collect::<BTreeSet<_>>().len(), usize::from(KEYS));
    }

    #[test]
    fn documents_are_as_long_as_they_say() {
        for length in [5, 6, 11, 12, 13, 1000] {
            for seed in 0..3 {
                let bytes = Document { seed, length }.bytes();
                assert_eq!(bytes.len(), length as usize);
                assert_eq!(bytes[..4], length.to_le_bytes());
                assert_eq!(bytes.last(), Some(&0));
            }
        }
    }
}
