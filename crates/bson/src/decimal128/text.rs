//! Decimals as text, by the rules of the BSON decimal128 specification.

use super::rounding::{Tail, Wide, round};
use super::{Decimal128, Finite, Parts, Sign};
use std::fmt;

/// Digits of a coefficient that are parsed: more than are kept, so that rounding sees the digits after them.
const PARSED_DIGITS: u32 = 36;

impl Decimal128 {
    /// Reads a number: digits with an optional point and exponent, `Infinity`, `Inf` or `NaN` in any case, with an
    /// optional sign. Digits beyond 34 are rounded half to even, as the server does (drivers refuse them).
    /// `None` for anything else, and for numbers that would become infinite or zero.
    /// Source: BSON decimal128 specification, "From String Representation".
    pub fn parse(text: &str) -> Option<Self> {
        Self::read(text, |digits| digits)
    }

    /// As [`Self::parse`], but digits beyond 34 are dropped.
    pub fn parse_truncating(text: &str) -> Option<Self> {
        Self::read(text, Digits::truncated)
    }

    fn read(text: &str, kept: fn(Digits) -> Digits) -> Option<Self> {
        let (sign, magnitude) = match text.as_bytes().first()? {
            b'-' => (Sign::Negative, &text[1..]),
            b'+' => (Sign::Positive, &text[1..]),
            _ => (Sign::Positive, text),
        };
        if magnitude.eq_ignore_ascii_case("infinity") || magnitude.eq_ignore_ascii_case("inf") {
            return Some(Self::infinity(sign));
        }
        if magnitude.eq_ignore_ascii_case("nan") {
            return Some(if sign == Sign::Negative { Self::NAN.negate() } else { Self::NAN });
        }
        let (number, power) = match magnitude.find(['e', 'E']) {
            Some(at) => (&magnitude[..at], parse_exponent(&magnitude[at + 1..])?),
            None => (magnitude, 0),
        };
        let digits = kept(parse_digits(number)?);
        let parsed =
            round(sign, Wide::from_u128(digits.coefficient), power.saturating_add(digits.exponent), digits.tail);
        let lost = parsed.is_infinite() || (parsed.is_zero() && digits.coefficient != 0);
        (!lost).then_some(parsed)
    }
}

/// Reads an exponent. It saturates far outside the range, but near enough that adding a text's length cannot overflow.
fn parse_exponent(text: &str) -> Option<i32> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let magnitude = digits.bytes().fold(0_i32, |sum, byte| (sum * 10 + i32::from(byte - b'0')).min(100_000_000));
    Some(if negative { -magnitude } else { magnitude })
}

struct Digits {
    coefficient: u128,
    exponent: i32,
    tail: Tail,
}

impl Digits {
    fn truncated(self) -> Self {
        let drop = super::digits(self.coefficient).saturating_sub(super::DIGITS);
        let coefficient = self.coefficient / 10_u128.pow(drop);
        Self { coefficient, exponent: self.exponent + drop as i32, tail: Tail::Zero }
    }
}

/// Reads digits with at most one point; `None` without any digit.
fn parse_digits(text: &str) -> Option<Digits> {
    let mut parsed = Digits { coefficient: 0, exponent: 0, tail: Tail::Zero };
    let (mut any, mut behind_point) = (false, false);
    for byte in text.bytes() {
        match byte {
            b'.' if !behind_point => behind_point = true,
            b'0'..=b'9' => {
                any = true;
                if super::digits(parsed.coefficient) < PARSED_DIGITS {
                    parsed.coefficient = parsed.coefficient * 10 + u128::from(byte - b'0');
                    parsed.exponent -= i32::from(behind_point);
                } else {
                    parsed.exponent += i32::from(!behind_point);
                    if byte != b'0' {
                        parsed.tail = Tail::NonZero;
                    }
                }
            }
            _ => return None,
        }
    }
    any.then_some(parsed)
}

impl fmt::Display for Decimal128 {
    /// Source: BSON decimal128 specification, "To String Representation".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts() {
            Parts::NaN => f.write_str("NaN"),
            Parts::Infinity(Sign::Positive) => f.write_str("Infinity"),
            Parts::Infinity(Sign::Negative) => f.write_str("-Infinity"),
            Parts::Finite(number) => write_finite(number, f),
        }
    }
}

fn write_finite(number: Finite, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if number.sign == Sign::Negative {
        f.write_str("-")?;
    }
    let digits = number.coefficient.to_string();
    let adjusted = number.adjusted_exponent();
    if number.exponent > 0 || adjusted < -6 {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        return write!(f, "{first}{point}{rest}E{adjusted:+}");
    }
    let behind_point = number.exponent.unsigned_abs() as usize;
    match digits.len().checked_sub(behind_point) {
        _ if behind_point == 0 => f.write_str(&digits),
        None | Some(0) => write!(f, "0.{digits:0>behind_point$}"),
        Some(before_point) => write!(f, "{}.{}", &digits[..before_point], &digits[before_point..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_text_comes_back() {
        for text in [
            "0",
            "-0",
            "1",
            "-1",
            "0.1",
            "1.00",
            "0.000001",
            "1E-7",
            "1.5E-7",
            "0E-7",
            "0.000000",
            "0E+3",
            "1E+3",
            "1.0E+3",
            "123.456",
            "-12345678901234567890.12345678901234",
            "1.000000000000000000000000000000000E+6144",
            "1E-6176",
            "9.999999999999999999999999999999999E+6144",
            "0E-6176",
            "0E+6111",
            "NaN",
            "Infinity",
            "-Infinity",
        ] {
            assert_eq!(Decimal128::parse(text).expect(text).to_string(), text);
        }
    }

    #[test]
    fn other_spellings_are_normalised() {
        for (text, canonical) in [
            ("+1", "1"),
            ("1.", "1"),
            (".5", "0.5"),
            ("00012", "12"),
            ("1e3", "1E+3"),
            ("10E2", "1.0E+3"),
            ("1E6144", "1.000000000000000000000000000000000E+6144"),
            ("0E9999", "0E+6111"),
            ("-0e-99999999999999999999", "-0E-6176"),
            ("inf", "Infinity"),
            ("-INFINITY", "-Infinity"),
            ("-nan", "NaN"),
            ("1000000000000000000000000000000000000000", "1.000000000000000000000000000000000E+39"),
            ("12345678901234567890123456789012345", "1.234567890123456789012345678901234E+34"),
            ("12345678901234567890123456789012345.0000000001", "1.234567890123456789012345678901235E+34"),
            ("99999999999999999999999999999999999", "1.000000000000000000000000000000000E+35"),
        ] {
            assert_eq!(Decimal128::parse(text).expect(text).to_string(), canonical, "{text}");
        }
    }

    #[test]
    fn text_that_is_not_a_number_is_refused() {
        for text in [
            "",
            "+",
            ".",
            "-.",
            "e5",
            "1e",
            "1e+",
            "1e5.5",
            "1..2",
            "1.2.3",
            " 1",
            "1 ",
            "--1",
            "0x1",
            "infinit",
            "1E6145",
            "1E-6177",
            "1e999999999999",
            "é",
        ] {
            assert!(Decimal128::parse(text).is_none(), "{text:?}");
        }
    }
}
