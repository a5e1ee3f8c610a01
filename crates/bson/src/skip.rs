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
    // The length of a string does not include its own four bytes. That of a document does.
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
        let word = u64::from_le_bytes(*word);
        // The lowest set bit is in the first byte that is zero.
        // Source: Hacker's Delight, "Find First 0-Byte".
        let zeros = word.wrapping_sub(LOW_BITS) & !word & HIGH_BITS;
        if zeros != 0 {
            return Some((zeros.trailing_zeros() / 8) as usize);
        }
    }
    bytes.iter().position(|&byte| byte == 0)
}
