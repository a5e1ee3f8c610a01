//! JSON's numbers: integers of 32 or 64 bits if they fit, otherwise doubles.
//!
//! Source: RFC 8259, section 6; Extended JSON specification, "Parsers".

use crate::import::flaw::{Flaw, shown};
use bunko_bson::Type;

/// Digits that fit 64 bits, whichever they are.
const SAFE_DIGITS: usize = 18;

/// Appends the number at `at`; returns its type and the offset after it.
pub(super) fn append(text: &str, at: usize, out: &mut Vec<u8>) -> Result<(Type, usize), Flaw> {
    let bytes = &text.as_bytes()[at..];
    let sign = usize::from(bytes.first() == Some(&b'-'));
    let mut integer: i64 = 0;
    let mut end = sign;
    while let Some(digit @ b'0'..=b'9') = bytes.get(end) {
        integer = integer.wrapping_mul(10).wrapping_add(i64::from(digit - b'0'));
        end += 1;
    }
    let digits = end - sign;
    let is_whole = !matches!(bytes.get(end), Some(b'.' | b'e' | b'E' | b'+' | b'-'));
    if digits == 0 || (digits > 1 && bytes[sign] == b'0') {
        return Err(Flaw::expected("a number", text, at));
    }
    if !is_whole || digits > SAFE_DIGITS {
        return append_long(text, at, out);
    }
    let number = if sign == 1 { -integer } else { integer };
    Ok((append_integer(number, out), at + end))
}

fn append_integer(number: i64, out: &mut Vec<u8>) -> Type {
    match i32::try_from(number) {
        Ok(number) => {
            out.extend_from_slice(&number.to_le_bytes());
            Type::Int32
        }
        Err(_) => {
            out.extend_from_slice(&number.to_le_bytes());
            Type::Int64
        }
    }
}

/// Appends a number with a fraction or an exponent, or an integer that may need more than 64 bits.
fn append_long(text: &str, at: usize, out: &mut Vec<u8>) -> Result<(Type, usize), Flaw> {
    let is_part = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    let length = text.as_bytes()[at..].iter().take_while(is_part).count();
    let digits = &text[at..at + length];
    if !is_number(digits) {
        return Err(Flaw::expected("a number", text, at));
    }
    if let Ok(number) = digits.parse() {
        return Ok((append_integer(number, out), at + length));
    }
    match digits.parse::<f64>() {
        Ok(number) if number.is_finite() => {
            out.extend_from_slice(&number.to_le_bytes());
            Ok((Type::Double, at + length))
        }
        _ => Err(Flaw::new(at, format!("the number {} is too large for a double", shown(digits)))),
    }
}

/// Whether a text has the form of a number whose first digits were checked: one fraction and one exponent at most, and
/// digits in each.
fn is_number(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.strip_prefix(['+', '-']).unwrap_or(exponent)),
        None => (text, "0"),
    };
    let mantissa = mantissa.strip_prefix('-').unwrap_or(mantissa);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    [whole, fraction, exponent].into_iter().all(is_digits)
}
