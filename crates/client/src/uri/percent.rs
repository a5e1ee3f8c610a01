//! Percent-encoding.
//! Source: RFC 3986, section 2.1.

/// The text behind an encoded one; `None` where a percent sign is not followed by two hexadecimal digits or the bytes
/// are not UTF-8. A plus sign stays one: this is not a form.
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
