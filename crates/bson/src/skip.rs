//! Skipping fields: the lengths of a name and a value, found without decoding them.

/// The way to find the length of a value, by its type's byte.
#[derive(Clone, Copy)]
pub(crate) struct Skip(u8);

/// The low bits: number of bytes that the value always has.
const FIXED: u8 = 0x1f;
/// The value begins with a length of four bytes, which is added to the fixed bytes.
const PREFIXED: u8 = 0x80;
/// The value is two texts that end with a zero.
const TEXTS: u8 = 0x40;
/// There is no such type.
const UNKNOWN: u8 = 0x20;

/// One entry for each byte. A lookup is one load, whereas a match would be a jump that processors cannot predict.
static SKIPS: [u8; 256] = {
    let mut skips = [UNKNOWN; 256];
    // Null, undefined, MinKey and MaxKey have no body.
    (skips[0x06], skips[0x0a], skips[0xff], skips[0x7f]) = (0, 0, 0, 0);
    skips[0x08] = 1;
    skips[0x10] = 4;
    (skips[0x01], skips[0x09], skips[0x11], skips[0x12]) = (8, 8, 8, 8);
    skips[0x07] = 12;
    skips[0x13] = 16;
    // The length of a string does not include its own four bytes. The length of a document does.
    (skips[0x02], skips[0x0d], skips[0x0e]) = (PREFIXED | 4, PREFIXED | 4, PREFIXED | 4);
    (skips[0x03], skips[0x04], skips[0x0f]) = (PREFIXED, PREFIXED, PREFIXED);
    skips[0x05] = PREFIXED | 5;
    skips[0x0c] = PREFIXED | 16;
    skips[0x0b] = TEXTS;
    skips
};

impl Skip {
    #[inline]
    pub fn of(kind: u8) -> Self {
        Self(SKIPS[usize::from(kind)])
    }

    /// Length in bytes of the value that begins at `at`; `None` if it does not fit into `bytes` or has no known type.
    #[inline]
    pub fn length(self, bytes: &[u8], at: usize) -> Option<usize> {
        let left = bytes.len().checked_sub(at)?;
        let mut length = usize::from(self.0 & FIXED);
        if self.0 > FIXED {
            if self.0 & PREFIXED == 0 {
                return if self.0 == TEXTS { texts(&bytes[at..]) } else { None };
            }
            let prefix = bytes[at..].first_chunk()?;
            length = length.checked_add(u32::from_le_bytes(*prefix) as usize)?;
        }
        // A negative length is a very large number here.
        (length <= left).then_some(length)
    }
}

fn texts(bytes: &[u8]) -> Option<usize> {
    let first = name_length(bytes)? + 1;
    Some(first + name_length(&bytes[first..])? + 1)
}

const LOW_BITS: u64 = u64::from_ne_bytes([0x01; 8]);
const HIGH_BITS: u64 = u64::from_ne_bytes([0x80; 8]);

/// Length in bytes of the name at the start of `bytes`, without its closing zero; `None` if there is no name.
#[inline]
pub(crate) fn name_length(bytes: &[u8]) -> Option<usize> {
    if let Some(word) = bytes.first_chunk() {
        let zeros = zeros(u64::from_le_bytes(*word));
        if zeros != 0 {
            return Some((zeros.trailing_zeros() / 8) as usize);
        }
    }
    bytes.iter().position(|&byte| byte == 0)
}

/// As [`name_length`], and whether the name is ASCII, as nearly all are.
#[inline]
pub(crate) fn name_length_and_ascii(bytes: &[u8]) -> Option<(usize, bool)> {
    if let Some(word) = bytes.first_chunk() {
        let word = u64::from_le_bytes(*word);
        let zeros = zeros(word);
        if zeros != 0 {
            let before_zero = (zeros - 1) & !zeros;
            return Some(((zeros.trailing_zeros() / 8) as usize, word & before_zero & HIGH_BITS == 0));
        }
    }
    let length = bytes.iter().position(|&byte| byte == 0)?;
    Some((length, bytes[..length].is_ascii()))
}

/// Bits of which the lowest is in the first byte that is zero; 0 if no byte is.
/// Source: Hacker's Delight, "Find First 0-Byte".
#[inline]
fn zeros(word: u64) -> u64 {
    word.wrapping_sub(LOW_BITS) & !word & HIGH_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_at_the_first_zero_and_only_their_own_bytes_count_as_text() {
        for length in 0..12 {
            for (position, byte) in (0..length).flat_map(|at| [0x01, 0x7f, 0x80, 0xff].map(|byte| (at, byte))) {
                for behind in [[0; 9], [0x80; 9], [0xff; 9], [1; 9]] {
                    let mut bytes = vec![b'a'; length];
                    bytes[position] = byte;
                    bytes.push(0);
                    for bytes in [bytes.clone(), [&bytes[..], &behind].concat()] {
                        assert_eq!(name_length_and_ascii(&bytes), Some((length, byte < 0x80)), "{bytes:?}");
                        assert_eq!(name_length(&bytes), Some(length), "{bytes:?}");
                    }
                }
            }
            assert_eq!(name_length_and_ascii(&vec![b'a'; length]), None);
        }
        assert_eq!(name_length_and_ascii(&[0, 0xff]), Some((0, true)));
    }
}
