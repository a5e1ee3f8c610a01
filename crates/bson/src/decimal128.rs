//! IEEE 754-2008 decimal floating point in its binary integer form, as BSON stores it.

mod arithmetic;
mod double;
mod limbs;
mod rounding;
mod text;

pub(crate) use double::compare_doubles;
pub use rounding::Rounding;

use std::cmp::Ordering;

/// Sixteen bytes, little endian, kept unchanged: `1.0` and `1.00` are equal, but have different bytes.
/// Source: BSON specification, type 0x13; IEEE 754-2008 binary integer decimal encoding.
#[derive(Clone, Copy, Debug)]
pub struct Decimal128(pub [u8; 16]);

/// Significant digits of a coefficient.
pub(crate) const DIGITS: u32 = 34;
/// Largest coefficient: 34 nines.
const COEFFICIENT_MAX: u128 = POWERS_OF_TEN[DIGITS as usize] - 1;
/// Exponent of the smallest subnormal, `1E-6176`.
pub(crate) const EXPONENT_MIN: i32 = -6176;
/// Exponent of the largest number, 34 nines.
const EXPONENT_MAX: i32 = 6111;

/// 10^0 to 10^38, all powers of ten that 128 bits hold.
pub(crate) const POWERS_OF_TEN: [u128; 39] = {
    let mut powers = [1; 39];
    let mut index = 1;
    while index < powers.len() {
        powers[index] = powers[index - 1] * 10;
        index += 1;
    }
    powers
};

const SIGN_BIT: u128 = 1 << 127;
const NAN_BITS: u128 = 0b11111 << 122;
const INFINITY_BITS: u128 = 0b11110 << 122;

/// The sign of a number. Zeros have one too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    Positive,
    Negative,
}

impl Sign {
    /// The sign of a product or quotient.
    fn times(self, other: Self) -> Self {
        if self == other { Self::Positive } else { Self::Negative }
    }

    /// Turns the order of two magnitudes into that of two numbers with this sign.
    fn direct(self, magnitudes: Ordering) -> Ordering {
        if self == Self::Negative { magnitudes.reverse() } else { magnitudes }
    }
}

/// `coefficient * 10^exponent`. The coefficient is at most 34 nines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finite {
    pub(crate) sign: Sign,
    pub(crate) coefficient: u128,
    pub(crate) exponent: i32,
}

impl Finite {
    /// The exponent in scientific notation: that of the first digit. Meaningless for zero.
    pub(crate) fn adjusted_exponent(self) -> i32 {
        self.exponent + digits(self.coefficient) as i32 - 1
    }

    /// The coefficient shifted left until its first of 34 digits is not zero.
    pub(crate) fn left_aligned(self) -> u128 {
        self.coefficient * POWERS_OF_TEN[(DIGITS - digits(self.coefficient)) as usize]
    }
}

/// The number that the sixteen bytes encode.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Parts {
    NaN,
    Infinity(Sign),
    Finite(Finite),
}

/// Number of decimal digits; zero has one.
pub(crate) fn digits(coefficient: u128) -> u32 {
    coefficient.checked_ilog10().unwrap_or(0) + 1
}

impl Decimal128 {
    /// `NaN`, quiet and without payload.
    pub const NAN: Self = Self(NAN_BITS.to_le_bytes());
    /// `Infinity`.
    pub const INFINITY: Self = Self(INFINITY_BITS.to_le_bytes());
    /// `-Infinity`.
    pub const NEG_INFINITY: Self = Self((SIGN_BIT | INFINITY_BITS).to_le_bytes());
    /// `0`.
    pub const ZERO: Self = Self((((-EXPONENT_MIN) as u128) << 113).to_le_bytes());

    /// An exact integer with exponent 0.
    pub fn from_i64(number: i64) -> Self {
        let sign = if number < 0 { Sign::Negative } else { Sign::Positive };
        Self::encode(Finite { sign, coefficient: u128::from(number.unsigned_abs()), exponent: 0 })
    }

    /// Whether the decimal is `NaN`, quiet or signalling.
    pub fn is_nan(self) -> bool {
        matches!(self.parts(), Parts::NaN)
    }

    /// Whether the decimal is an infinity of either sign.
    pub fn is_infinite(self) -> bool {
        matches!(self.parts(), Parts::Infinity(_))
    }

    /// Whether the sign bit is set. `-0` and a `NaN` may have it too.
    pub fn is_negative(self) -> bool {
        self.bits() & SIGN_BIT != 0
    }

    /// Whether the decimal is zero, of either sign and any exponent.
    pub fn is_zero(self) -> bool {
        matches!(self.parts(), Parts::Finite(Finite { coefficient: 0, .. }))
    }

    /// Whether both are the same sixteen bytes; `1.0` and `1.00` are not.
    pub fn total_eq(self, other: Self) -> bool {
        self.0 == other.0
    }

    /// The number with the other sign; `0` becomes `-0`.
    #[must_use]
    pub fn negate(self) -> Self {
        Self((self.bits() ^ SIGN_BIT).to_le_bytes())
    }

    /// The number without its sign.
    #[must_use]
    pub fn abs(self) -> Self {
        Self((self.bits() & !SIGN_BIT).to_le_bytes())
    }

    /// Numeric order: `NaN` lowest and equal to itself, `-0` equal to `0`, `1.0` equal to `1.00`.
    pub fn compare(self, other: Self) -> Ordering {
        let (a, b) = (self.parts(), other.parts());
        match (class(a), class(b)) {
            (Class::Finite, Class::Finite) => {}
            (a, b) => return a.cmp(&b),
        }
        let (Parts::Finite(a), Parts::Finite(b)) = (a, b) else { return Ordering::Equal };
        match (signum(a), signum(b)) {
            (first, second) if first != second || first == 0 => first.cmp(&second),
            _ => a.sign.direct(
                a.adjusted_exponent().cmp(&b.adjusted_exponent()).then_with(|| a.left_aligned().cmp(&b.left_aligned())),
            ),
        }
    }

    fn bits(self) -> u128 {
        u128::from_le_bytes(self.0)
    }

    /// Decodes the bytes. Coefficients beyond 34 digits are not canonical, and read as zero.
    /// Source: IEEE 754-2008, 3.5.2.
    pub(crate) fn parts(self) -> Parts {
        let bits = self.bits();
        let sign = if bits & SIGN_BIT == 0 { Sign::Positive } else { Sign::Negative };
        match bits & NAN_BITS {
            NAN_BITS => return Parts::NaN,
            INFINITY_BITS => return Parts::Infinity(sign),
            _ => {}
        }
        // Two set bits after the sign mean a coefficient of at least 2^113, which is beyond 34 digits.
        let large_form = bits >> 125 & 0b11 == 0b11;
        let biased = if large_form { bits >> 111 } else { bits >> 113 } & 0x3fff;
        let coefficient = if large_form { 0 } else { bits & ((1 << 113) - 1) };
        let coefficient = if coefficient > COEFFICIENT_MAX { 0 } else { coefficient };
        Parts::Finite(Finite { sign, coefficient, exponent: biased as i32 + EXPONENT_MIN })
    }

    /// Encodes a coefficient of at most 34 digits; the exponent must be in range.
    fn encode(number: Finite) -> Self {
        debug_assert!(number.coefficient <= COEFFICIENT_MAX, "coefficient beyond 34 digits");
        debug_assert!((EXPONENT_MIN..=EXPONENT_MAX).contains(&number.exponent), "exponent out of range");
        let sign = if number.sign == Sign::Negative { SIGN_BIT } else { 0 };
        let biased = (number.exponent - EXPONENT_MIN) as u128;
        Self((sign | biased << 113 | number.coefficient).to_le_bytes())
    }

    fn infinity(sign: Sign) -> Self {
        if sign == Sign::Negative { Self::NEG_INFINITY } else { Self::INFINITY }
    }
}

/// Order of the classes of numbers.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    NaN,
    NegativeInfinity,
    Finite,
    Infinity,
}

fn class(parts: Parts) -> Class {
    match parts {
        Parts::NaN => Class::NaN,
        Parts::Infinity(Sign::Negative) => Class::NegativeInfinity,
        Parts::Finite(_) => Class::Finite,
        Parts::Infinity(Sign::Positive) => Class::Infinity,
    }
}

/// -1, 0 or 1; both zeros are 0.
fn signum(number: Finite) -> i32 {
    match (number.coefficient, number.sign) {
        (0, _) => 0,
        (_, Sign::Negative) => -1,
        (_, Sign::Positive) => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_known_numbers() {
        // Source: BSON decimal128 corpus, values as big endian hexadecimal.
        for (text, bits) in [
            ("0", 0x3040_0000_0000_0000_0000_0000_0000_0000_u128),
            ("-0", 0xb040_0000_0000_0000_0000_0000_0000_0000),
            ("0.1", 0x303e_0000_0000_0000_0000_0000_0000_0001),
            ("1E+6144", 0x5ffe_314d_c644_8d93_38c1_5b0a_0000_0000),
            ("9.999999999999999999999999999999999E+6144", 0x5fff_ed09_bead_87c0_378d_8e63_ffff_ffff),
            ("1E-6176", 0x0000_0000_0000_0000_0000_0000_0000_0001),
            ("NaN", NAN_BITS),
            ("-Infinity", SIGN_BIT | INFINITY_BITS),
        ] {
            let parsed = Decimal128::parse(text).expect(text);
            assert_eq!(format!("{:032x}", parsed.bits()), format!("{bits:032x}"), "{text}");
        }
        assert!(Decimal128::ZERO.total_eq(Decimal128::from_i64(0)));
    }

    #[test]
    fn noncanonical_encodings_are_zero() {
        let beyond_34_digits = Decimal128((COEFFICIENT_MAX + 1).to_le_bytes());
        let large_form = Decimal128(0x6c10_ffff_ffff_ffff_ffff_ffff_ffff_ffff_u128.to_le_bytes());
        for number in [beyond_34_digits, large_form] {
            assert!(number.is_zero());
            assert_eq!(number.compare(Decimal128::ZERO), Ordering::Equal);
        }
    }

    #[test]
    fn order_ignores_representation() {
        let ascending = ["NaN", "-Infinity", "-1E+10", "-1", "-1E-6176", "0", "0.1", "1.0", "2", "1E+6144", "Infinity"];
        let numbers = ascending.map(|text| Decimal128::parse(text).expect(text));
        for (i, a) in numbers.iter().enumerate() {
            for (j, b) in numbers.iter().enumerate() {
                assert_eq!(a.compare(*b), i.cmp(&j), "{a} and {b}");
            }
        }
        let parse = |text| Decimal128::parse(text).expect(text);
        assert_eq!(parse("1.0").compare(parse("1.00")), Ordering::Equal);
        assert_eq!(parse("-0E+5").compare(parse("0E-5")), Ordering::Equal);
        assert!(!parse("1.0").total_eq(parse("1.00")));
    }
}
