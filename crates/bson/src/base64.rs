//! Base64 with the standard alphabet and padding, as Extended JSON writes binary data.
//! Source: RFC 4648, section 4.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The text of some bytes, padded to a multiple of four.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut group = [0; 4];
        group[1..=chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes(group);
        for position in 0..4 {
            let sextet = bits >> (18 - 6 * position) & 0x3f;
            text.push(if position <= chunk.len() { char::from(ALPHABET[sextet as usize]) } else { '=' });
        }
    }
    text
}

/// The bytes that a text encodes. Padding may be missing. `None` if a character is not of the alphabet, the length is
/// impossible, or bits after the last byte are set (two texts must not encode the same bytes).
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let unpadded = match text.len() % 4 {
        0 => text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text),
        _ => text,
    };
    let mut bytes = Vec::with_capacity(unpadded.len() / 4 * 3 + 2);
    for group in unpadded.as_bytes().chunks(4) {
        let mut bits = 0;
        for &character in group {
            bits = bits << 6 | sextet(character)?;
        }
        bits <<= 6 * (4 - group.len());
        let count = group.len() * 6 / 8;
        let behind_last_byte = (1 << (24 - 8 * count)) - 1;
        if count == 0 || bits & behind_last_byte != 0 {
            return None;
        }
        bytes.extend_from_slice(&bits.to_be_bytes()[1..=count]);
    }
    Some(bytes)
}

fn sextet(character: u8) -> Option<u32> {
    Some(u32::from(match character {
        b'A'..=b'Z' => character - b'A',
        b'a'..=b'z' => character - b'a' + 26,
        b'0'..=b'9' => character - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_the_rfc() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
            assert_eq!(decode(text.trim_end_matches('=')).as_deref(), Some(bytes.as_bytes()));
        }
        assert_eq!(encode(&[0xfb, 0xff, 0xfe]), "+//+");
    }

    #[test]
    fn what_encode_never_writes_is_refused() {
        for text in ["Z", "Zg=", "Zh==", "Zm9=", "Zm9v=", "Zm 9", "Zg==Zg==", "-_-_", "="] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
