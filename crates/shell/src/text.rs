//! Strings of scripts as text: a string of JavaScript may contain half of a surrogate pair, which no text in UTF-8 has.

use rquickjs::{Ctx, FromJs, Result, Value};

/// A string of a script. U+FFFD stands for each half of a surrogate pair without its other half, as in Node.
pub(crate) struct Text(pub String);

impl<'js> FromJs<'js> for Text {
    fn from_js(_: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        let text = rquickjs::String::from_value(value)?.to_cstring()?;
        // The engine keeps halves of pairs, so its bytes are checked before they are taken for text.
        let bytes = text.as_str().as_bytes();
        Ok(Self(match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => with_replacements(bytes),
        }))
    }
}

/// The text of bytes in which the engine wrote half of a pair as three bytes, of which the second is at least 0xA0.
fn with_replacements(bytes: &[u8]) -> String {
    let mut kept = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    loop {
        match rest {
            [] => return String::from_utf8_lossy(&kept).into_owned(),
            [0xED, 0xA0..=0xFF, _, others @ ..] => {
                kept.extend_from_slice("\u{FFFD}".as_bytes());
                rest = others;
            }
            [byte, others @ ..] => {
                kept.push(*byte);
                rest = others;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::with_replacements;

    #[test]
    fn a_half_of_a_pair_becomes_one_replacement_character() {
        assert_eq!(
            with_replacements(b"a\xED\xA0\x80b\xED\xBF\xBF\xC3\xA9\0\xED\x9F\xBF"),
            "a\u{FFFD}b\u{FFFD}é\0\u{D7FF}"
        );
        assert_eq!(with_replacements("whole 🦀".as_bytes()), "whole 🦀");
    }
}
