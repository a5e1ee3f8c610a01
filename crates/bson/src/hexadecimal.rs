//! Bytes as hexadecimal digits, two a byte.

/// Digits with lower-case letters.
pub fn small(bytes: &[u8]) -> String {
    digits(bytes, &PAIRS_SMALL)
}

/// Digits with upper-case letters.
pub fn capital(bytes: &[u8]) -> String {
    digits(bytes, &PAIRS_CAPITAL)
}

/// The 16 bytes of a UUID, as UUIDs are written: `00112233-4455-6677-8899-aabbccddeeff`.
pub fn uuid(bytes: &[u8]) -> String {
    let mut text = small(bytes);
    for position in [20, 16, 12, 8] {
        text.insert(position, '-');
    }
    text
}

/// Both digits of a byte are looked up at once, because each event of a change stream has a token of digits.
fn digits(bytes: &[u8], pairs: &[[u8; 2]; 256]) -> String {
    let mut digits = vec![0; 2 * bytes.len()];
    for (pair, byte) in digits.as_chunks_mut().0.iter_mut().zip(bytes) {
        *pair = pairs[usize::from(*byte)];
    }
    String::from_utf8(digits).expect("digits are ASCII")
}

const PAIRS_SMALL: [[u8; 2]; 256] = pairs(b"0123456789abcdef");
const PAIRS_CAPITAL: [[u8; 2]; 256] = pairs(b"0123456789ABCDEF");

const fn pairs(digits: &[u8; 16]) -> [[u8; 2]; 256] {
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < pairs.len() {
        pairs[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    pairs
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_byte_has_two_digits() {
        assert_eq!((super::small(b"\x00\x0f\xa5\xff"), super::capital(b"\xbc")), ("000fa5ff".into(), "BC".into()));
        assert_eq!(super::small(b""), "");
        let bytes: [u8; 16] = std::array::from_fn(|index| index as u8 * 0x11);
        assert_eq!(super::uuid(&bytes), "00112233-4455-6677-8899-aabbccddeeff");
    }
}
