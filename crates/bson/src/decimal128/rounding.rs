//! Rounding exact results to 34 digits, and numbers to fewer places.

use super::limbs::Limbs;
use super::{
    COEFFICIENT_MAX, DIGITS, Decimal128, EXPONENT_MAX, EXPONENT_MIN, Finite, POWERS_OF_TEN, Parts, Sign, digits,
};

/// Wide enough for two aligned coefficients of an addition, 10^104.
pub(super) type Wide = Limbs<6>;

/// The neighbour to which a number between two representable numbers is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// The nearer one; the one with an even last digit if both are equally near.
    HalfEven,
    /// The one towards negative infinity.
    Floor,
    /// The one towards positive infinity.
    Ceiling,
    /// The one towards zero.
    Truncate,
}

/// Whether an exact result has more digits than are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// Nothing follows.
    Zero,
    /// Something below one unit of the last kept digit follows.
    NonZero,
}

impl Rounding {
    /// Whether the kept digits are rounded up, given the first dropped digit and the digits after it.
    fn rounds_up(self, sign: Sign, kept: u128, dropped: u64, tail: Tail) -> bool {
        let inexact = dropped != 0 || tail == Tail::NonZero;
        match self {
            Self::HalfEven => dropped > 5 || (dropped == 5 && (tail == Tail::NonZero || kept & 1 == 1)),
            Self::Floor => inexact && sign == Sign::Negative,
            Self::Ceiling => inexact && sign == Sign::Positive,
            Self::Truncate => false,
        }
    }
}

impl Decimal128 {
    /// The nearest integer; halves are rounded to the even one. The exponent is 0 unless it is larger already.
    #[must_use]
    pub fn round_to_integral(self) -> Self {
        self.round_to_exponent(0, Rounding::HalfEven)
    }

    /// The largest integer that is not greater than the number.
    #[must_use]
    pub fn floor(self) -> Self {
        self.round_to_exponent(0, Rounding::Floor)
    }

    /// The smallest integer that is not less than the number.
    #[must_use]
    pub fn ceil(self) -> Self {
        self.round_to_exponent(0, Rounding::Ceiling)
    }

    /// The integer part.
    #[must_use]
    pub fn trunc(self) -> Self {
        self.round_to_exponent(0, Rounding::Truncate)
    }

    /// Rounds to a multiple of `10^exponent`. A number that is a multiple already keeps its form, as do `NaN` and
    /// infinities.
    #[must_use]
    pub fn round_to_exponent(self, exponent: i32, rounding: Rounding) -> Self {
        let Parts::Finite(number) = self.parts() else { return self };
        let drop = exponent.clamp(EXPONENT_MIN, EXPONENT_MAX) - number.exponent;
        if drop <= 0 {
            return self;
        }
        let (kept, dropped, tail) = drop_digits(Wide::from_u128(number.coefficient), drop as u32);
        let kept = kept.to_u128().unwrap_or(0);
        let coefficient = kept + u128::from(rounding.rounds_up(number.sign, kept, dropped, tail));
        round(number.sign, Wide::from_u128(coefficient), number.exponent + drop, Tail::Zero)
    }
}

/// Splits off the last `count` digits, at least one. Returns the other digits, the first dropped digit, and the tail
/// after it.
fn drop_digits(mut number: Wide, count: u32) -> (Wide, u64, Tail) {
    let mut tail = Tail::Zero;
    let mut rest = count - 1;
    while rest > 0 && !number.is_zero() {
        let step = rest.min(19);
        if number.divide(10_u64.pow(step)) != 0 {
            tail = Tail::NonZero;
        }
        rest -= step;
    }
    let dropped = number.divide(10);
    (number, dropped, tail)
}

fn wide_digits(number: Wide) -> u32 {
    let mut number = number;
    let mut dropped = 0;
    loop {
        if let Some(rest) = number.to_u128() {
            return dropped + digits(rest);
        }
        number.divide(10_u64.pow(19));
        dropped += 19;
    }
}

/// Rounds an exact result half to even into 34 digits and the range of exponents.
///
/// With a non-zero `tail`, `coefficient` must have more than 34 digits, so that the tail is never the first dropped
/// digit.
pub(super) fn round(sign: Sign, coefficient: Wide, exponent: i32, tail: Tail) -> Decimal128 {
    let excess = wide_digits(coefficient) as i32 - DIGITS as i32;
    let drop = excess.max(EXPONENT_MIN - exponent);
    let (mut coefficient, mut exponent) = match coefficient.to_u128() {
        Some(exact) if drop <= 0 => (exact, exponent),
        _ => {
            let (kept, dropped, below) = drop_digits(coefficient, drop as u32);
            let tail = if below == Tail::NonZero { below } else { tail };
            let kept = kept.to_u128().unwrap_or(0);
            let up = Rounding::HalfEven.rounds_up(sign, kept, dropped, tail);
            (kept + u128::from(up), exponent + drop)
        }
    };
    if coefficient > COEFFICIENT_MAX {
        // Rounding up 34 nines carries into a 35th digit.
        coefficient /= 10;
        exponent += 1;
    }
    if coefficient == 0 {
        exponent = exponent.clamp(EXPONENT_MIN, EXPONENT_MAX);
    }
    // With few digits, a large exponent is still in range: zeros after the digits take part of it.
    let spare = DIGITS - digits(coefficient);
    match u32::try_from(exponent - EXPONENT_MAX).unwrap_or(0) {
        0 => Decimal128::encode(Finite { sign, coefficient, exponent }),
        zeros if zeros <= spare => {
            let coefficient = coefficient * POWERS_OF_TEN[zeros as usize];
            Decimal128::encode(Finite { sign, coefficient, exponent: EXPONENT_MAX })
        }
        _ => Decimal128::infinity(sign),
    }
}

impl Decimal128 {
    /// The nearest decimal to `coefficient * 10^exponent`, infinite beyond the range.
    pub(crate) fn from_parts(number: Finite) -> Self {
        round(number.sign, Wide::from_u128(number.coefficient), number.exponent, Tail::Zero)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounded(text: &str, f: impl Fn(Decimal128) -> Decimal128) -> String {
        f(Decimal128::parse(text).expect(text)).to_string()
    }

    #[test]
    fn integers_in_all_directions() {
        for (text, round, floor, ceil, trunc) in [
            ("2.5", "2", "2", "3", "2"),
            ("3.5", "4", "3", "4", "3"),
            ("-2.5", "-2", "-3", "-2", "-2"),
            ("-0.2", "-0", "-1", "-0", "-0"),
            ("2.50000001", "3", "2", "3", "2"),
            ("9.99", "10", "9", "10", "9"),
            ("7", "7", "7", "7", "7"),
            ("1E+3", "1E+3", "1E+3", "1E+3", "1E+3"),
            ("1E-6176", "0", "0", "1", "0"),
            ("NaN", "NaN", "NaN", "NaN", "NaN"),
            ("-Infinity", "-Infinity", "-Infinity", "-Infinity", "-Infinity"),
        ] {
            assert_eq!(rounded(text, Decimal128::round_to_integral), round, "round {text}");
            assert_eq!(rounded(text, Decimal128::floor), floor, "floor {text}");
            assert_eq!(rounded(text, Decimal128::ceil), ceil, "ceil {text}");
            assert_eq!(rounded(text, Decimal128::trunc), trunc, "trunc {text}");
        }
    }

    #[test]
    fn places_before_and_behind_the_point() {
        assert_eq!(rounded("1234.5678", |n| n.round_to_exponent(-2, Rounding::HalfEven)), "1234.57");
        assert_eq!(rounded("1234.5678", |n| n.round_to_exponent(2, Rounding::Truncate)), "1.2E+3");
        assert_eq!(rounded("1234.5", |n| n.round_to_exponent(-4, Rounding::Floor)), "1234.5");
    }
}
