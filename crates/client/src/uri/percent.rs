//! Percent-encoding.
//! Source: RFC 3986, sections 2.1 and 2.3.

/// Encodes a part of a connection string (user, password, socket, option): all bytes except letters, digits and `-._~`,
/// which never need encoding.
pub fn percent_encoded(part: impl AsRef<[u8]>) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let bytes = part.as_ref().iter();
    bytes.map(|&byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// Decodes a text; `None` if a percent sign is not followed by two hexadecimal digits or the bytes are not UTF-8. A
/// plus sign is kept: this is not a form.
pub(super) fn decode(text: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || bytes.next().and_then(|digit| char::from(digit).to_digit(16));
        decoded.push((digit()? * 16 + digit()?) as u8);
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_text_has_no_reserved_character_and_decodes_to_the_same() {
        assert_eq!(percent_encoded("Az09-._~"), "Az09-._~");
        assert_eq!(percent_encoded("/tmp/a b.sock"), "%2Ftmp%2Fa%20b.sock");
        assert_eq!(percent_encoded([0x0a, 0xff]), "%0A%FF");
        let every: String = (0..=0x17f_u32).filter_map(char::from_u32).collect();
        let encoded = percent_encoded(&every);
        assert!(encoded.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte)), "{encoded}");
        assert_eq!(decode(&encoded), Some(every));
    }
}
