//! The state of an unfinished MD5, as servers pass it to each other: the memory layout of mongod's library.
//!
//! ```text
//! 0   u64       bits in the whole blocks of 64 bytes that were digested
//! 8   4 x u32   the words of the digest
//! 24  u32       number of bytes in the incomplete block
//! 28  64 bytes  these bytes, then zeros
//! 92            zeros
//! ```

use md5::Md5;
use md5::digest::common::hazmat::SerializableState;

/// Size of a state. It has room for the largest digest of mongod's library.
const STATE_BYTES: usize = 208;
const BLOCK_BYTES: usize = 64;
const WORDS: std::ops::Range<usize> = 8..24;
const LEFT: std::ops::Range<usize> = 24..28;
const BLOCK: usize = 28;

/// Offsets in a serialized [`Md5`]: after the words come the number of whole blocks, the number of bytes in the
/// incomplete block, and these bytes.
const OUR_BLOCKS: std::ops::Range<usize> = 16..24;
const OUR_LEFT: usize = 24;
const OUR_BLOCK: usize = 25;

pub(super) fn encode(md5: &Md5) -> [u8; STATE_BYTES] {
    let ours = md5.serialize();
    let blocks = u64::from_le_bytes(ours[OUR_BLOCKS].try_into().expect("eight bytes"));
    let bits = blocks.wrapping_mul(BLOCK_BYTES as u64 * 8);
    let left = usize::from(ours[OUR_LEFT]);
    let mut state = [0; STATE_BYTES];
    state[..8].copy_from_slice(&bits.to_le_bytes());
    state[WORDS].copy_from_slice(&ours[..16]);
    state[LEFT].copy_from_slice(&(left as u32).to_le_bytes());
    state[BLOCK..BLOCK + left].copy_from_slice(&ours[OUR_BLOCK..OUR_BLOCK + left]);
    state
}

/// Reads a state; `None` if it is malformed.
pub(super) fn decode(state: &[u8]) -> Option<Md5> {
    let state: &[u8; STATE_BYTES] = state.try_into().ok()?;
    let bits = u64::from_le_bytes(state[..8].try_into().expect("eight bytes"));
    let left = u32::from_le_bytes(state[LEFT].try_into().expect("four bytes")) as usize;
    if left >= BLOCK_BYTES {
        return None;
    }
    let mut ours = Md5::default().serialize();
    ours[..16].copy_from_slice(&state[WORDS]);
    ours[OUR_BLOCKS].copy_from_slice(&(bits / (BLOCK_BYTES as u64 * 8)).to_le_bytes());
    ours[OUR_LEFT] = left as u8;
    ours[OUR_BLOCK..OUR_BLOCK + left].copy_from_slice(&state[BLOCK..BLOCK + left]);
    Md5::deserialize(&ours).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use md5::Digest;

    #[test]
    fn a_digest_goes_on_where_it_was() {
        let content: Vec<u8> = (0..200).collect();
        for cut in 0..content.len() {
            let mut first = Md5::new();
            first.update(&content[..cut]);
            let state = encode(&first);
            assert!(state[BLOCK + BLOCK_BYTES..].iter().all(|byte| *byte == 0));
            let mut second = decode(&state).expect("a state");
            second.update(&content[cut..]);
            assert_eq!(second.finalize(), Md5::digest(&content), "cut at {cut}");
        }
    }

    #[test]
    fn malformed_states_are_refused() {
        let mut state = encode(&Md5::new());
        assert!(decode(&state).is_some() && decode(&state[1..]).is_none());
        state[LEFT].copy_from_slice(&64_u32.to_le_bytes());
        assert!(decode(&state).is_none());
    }
}
