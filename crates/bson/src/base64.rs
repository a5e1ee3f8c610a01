//! Base64 with the standard alphabet and padding, as Extended JSON writes binary data.
//! Source: RFC 4648, section 4.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

/// Encodes bytes as text, padded to a multiple of four characters.
pub fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Decodes a text, whose padding may be missing. `None` if a character is not of the alphabet, the length is
/// impossible, or bits after the last byte are set (two texts must not encode the same bytes).
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let engine = if text.len().is_multiple_of(4) { STANDARD } else { STANDARD_NO_PAD };
    engine.decode(text).ok()
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
    fn text_that_encode_never_writes_is_refused() {
        for text in ["Z", "Zg=", "Zh==", "Zm9=", "Zm9v=", "Zm 9", "Zg==Zg==", "-_-_", "="] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
