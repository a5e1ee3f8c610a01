//! JSON's strings.

use crate::import::flaw::Flaw;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// Length of the front part that a string holds as it is: up to a quote, a backslash or a control character. Eight
/// bytes are looked at together.
pub(super) fn plain_length(bytes: &[u8]) -> usize {
    let mut length = 0;
    for eight in bytes.chunks_exact(8) {
        let word = u64::from_le_bytes(eight.try_into().expect("eight bytes"));
        let (quote, backslash) = (word ^ (ONES * u64::from(b'"')), word ^ (ONES * u64::from(b'\\')));
        // A byte's high bit is set where the byte is zero, or below 0x20. Borrows reach only bytes after such a byte.
        let zero_bytes = |word: u64| word.wrapping_sub(ONES) & !word;
        let controls = word.wrapping_sub(ONES * 0x20) & !word;
        let found = (zero_bytes(quote) | zero_bytes(backslash) | controls) & HIGH_BITS;
        if found != 0 {
            return length + found.trailing_zeros() as usize / 8;
        }
        length += 8;
    }
    let rest = &bytes[length..];
    length + rest.iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f)).count()
}

/// Appends the contents of the string that begins after a quote at `start`; returns the offset after its closing
/// quote.
pub(super) fn append_contents(text: &str, start: usize, out: &mut Vec<u8>) -> Result<usize, Flaw> {
    let bytes = text.as_bytes();
    let mut at = start;
    loop {
        let plain = plain_length(&bytes[at..]);
        out.extend_from_slice(&bytes[at..at + plain]);
        at += plain;
        match bytes.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => at += append_escaped(text, at, out)?,
            Some(_) => return Err(Flaw::expected("an escape for a control character", text, at)),
            None => return Err(Flaw::at_end(text.len(), "a string is not closed")),
        }
    }
}

/// Appends the character of an escape sequence, and returns the sequence's length.
fn append_escaped(text: &str, at: usize, out: &mut Vec<u8>) -> Result<usize, Flaw> {
    let byte = match text.as_bytes().get(at + 1) {
        Some(byte @ (b'"' | b'\\' | b'/')) => *byte,
        Some(b'b') => 8,
        Some(b'f') => 0xc,
        Some(b'n') => b'\n',
        Some(b'r') => b'\r',
        Some(b't') => b'\t',
        Some(b'u') => return append_code_point(text, at, out),
        _ => return Err(Flaw::expected("an escape sequence", text, at)),
    };
    out.push(byte);
    Ok(2)
}

/// Appends the character of `\uXXXX`, or of two of them if the first is the first half of a surrogate pair.
fn append_code_point(text: &str, at: usize, out: &mut Vec<u8>) -> Result<usize, Flaw> {
    let units = match (code_unit(text, at), code_unit(text, at + 6)) {
        (Some(high @ 0xd800..0xdc00), Some(low)) => vec![high, low],
        (Some(unit), _) => vec![unit],
        (None, _) => return Err(Flaw::expected("four hexadecimal digits", text, at)),
    };
    let length = units.len() * 6;
    match char::decode_utf16(units).next() {
        Some(Ok(character)) => {
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            Ok(length)
        }
        _ => Err(Flaw::expected("a whole surrogate pair", text, at)),
    }
}

fn code_unit(text: &str, at: usize) -> Option<u16> {
    let digits = text.as_bytes().get(at..at + 6)?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |unit: u16, &digit| Some(unit << 4 | char::from(digit).to_digit(16)? as u16))
}
