//! The four operations and the remainder, rounded half to even to 34 digits.
//!
//! An exact result has the exponent that IEEE 754-2008 prefers: the smaller one for a sum, the sum for a product, the
//! difference for a quotient. An invalid operation gives `NaN`, and a result beyond the range is infinite.

use super::rounding::{Tail, Wide, round};
use super::{DIGITS, Decimal128, EXPONENT_MIN, Finite, POWERS_OF_TEN, Parts, Sign, digits};

/// Difference of exponents beyond which the smaller addend is after all digits that can matter.
const ALIGNED_DIGITS_MAX: u32 = 2 * DIGITS + 2;

// Operators of `std::ops` would suggest that other number types can be mixed in. These names are the server's.
#[allow(clippy::should_implement_trait)]
impl Decimal128 {
    /// Adds `other`; opposite infinities give `NaN`.
    #[must_use]
    pub fn add(self, other: Self) -> Self {
        match (self.parts(), other.parts()) {
            (Parts::Finite(a), Parts::Finite(b)) if a.exponent >= b.exponent => add_aligned(a, b),
            (Parts::Finite(a), Parts::Finite(b)) => add_aligned(b, a),
            (Parts::Infinity(a), Parts::Infinity(b)) if a == b => Self::infinity(a),
            (Parts::Infinity(sign), Parts::Finite(_)) | (Parts::Finite(_), Parts::Infinity(sign)) => {
                Self::infinity(sign)
            }
            _ => self.invalid(other),
        }
    }

    /// Result of an operation without a value: the first operand that is `NaN`, with its sign, else `NaN`.
    fn invalid(self, other: Self) -> Self {
        match (self.is_nan(), other.is_nan()) {
            (true, _) => self,
            (false, true) => other,
            (false, false) => Self::NAN,
        }
    }

    /// Subtracts `other`; equal infinities give `NaN`.
    #[must_use]
    pub fn subtract(self, other: Self) -> Self {
        // A NaN keeps its sign.
        self.add(if other.is_nan() { other } else { other.negate() })
    }

    /// Multiplies by `other`; zero times infinity gives `NaN`.
    #[must_use]
    pub fn multiply(self, other: Self) -> Self {
        match (self.parts(), other.parts()) {
            (Parts::Finite(a), Parts::Finite(b)) => {
                let product = Wide::product(a.coefficient, b.coefficient);
                round(a.sign.times(b.sign), product, a.exponent + b.exponent, Tail::Zero)
            }
            (Parts::Infinity(a), Parts::Infinity(b)) => Self::infinity(a.times(b)),
            (Parts::Infinity(a), Parts::Finite(b)) | (Parts::Finite(b), Parts::Infinity(a)) if b.coefficient != 0 => {
                Self::infinity(a.times(b.sign))
            }
            _ => Self::NAN,
        }
    }

    /// Divides by `other`. A non-zero number divided by zero is infinite, zero divided by zero is `NaN`.
    #[must_use]
    pub fn divide(self, other: Self) -> Self {
        match (self.parts(), other.parts()) {
            (Parts::Finite(a), Parts::Finite(b)) => match (a.coefficient, b.coefficient) {
                (0, 0) => Self::NAN,
                (_, 0) => Self::infinity(a.sign.times(b.sign)),
                _ => quotient(a, b),
            },
            (Parts::Infinity(a), Parts::Finite(b)) => Self::infinity(a.times(b.sign)),
            (Parts::Finite(a), Parts::Infinity(b)) => {
                Self::encode(Finite { sign: a.sign.times(b), coefficient: 0, exponent: EXPONENT_MIN })
            }
            _ => self.invalid(other),
        }
    }

    /// The remainder of a division by `other` with a whole quotient. It is exact and has the sign of `self`; `NaN` for
    /// a zero divisor or an infinite dividend.
    #[must_use]
    pub fn remainder(self, other: Self) -> Self {
        match (self.parts(), other.parts()) {
            (Parts::Finite(_), Parts::Infinity(_)) => self,
            (Parts::Finite(a), Parts::Finite(b)) if b.coefficient != 0 => remainder(a, b),
            _ => Self::NAN,
        }
    }
}

/// Adds two numbers of which `a` has the larger exponent.
fn add_aligned(a: Finite, b: Finite) -> Decimal128 {
    let distance = (a.exponent - b.exponent).unsigned_abs();
    let mut sum = Wide::from_u128(a.coefficient);
    if distance > ALIGNED_DIGITS_MAX && a.coefficient != 0 {
        // `b` is too small to decide even a halfway case: the sum is `a`, with as many zeros as it has room for.
        sum.multiply_power(10, DIGITS);
        return round(a.sign, sum, a.exponent - DIGITS as i32, Tail::Zero);
    }
    // A zero need not be aligned.
    if a.coefficient != 0 {
        sum.multiply_power(10, distance);
    }
    let addend = Wide::from_u128(b.coefficient);
    if a.sign == b.sign {
        sum.add(&addend);
        return round(a.sign, sum, b.exponent, Tail::Zero);
    }
    let (sign, difference) = if sum < addend {
        let mut difference = addend;
        difference.subtract(&sum);
        (b.sign, difference)
    } else {
        sum.subtract(&addend);
        (a.sign, sum)
    };
    // Opposite numbers cancel to a positive zero.
    let sign = if difference.is_zero() { Sign::Positive } else { sign };
    round(sign, difference, b.exponent, Tail::Zero)
}

/// Divides by a non-zero number.
fn quotient(a: Finite, b: Finite) -> Decimal128 {
    let sign = a.sign.times(b.sign);
    let preferred = a.exponent - b.exponent;
    if a.coefficient == 0 {
        return round(sign, Wide::from_u128(0), preferred, Tail::Zero);
    }
    // With this many digits the quotient has more than 34.
    let scale = (DIGITS + 2 + digits(b.coefficient)).saturating_sub(digits(a.coefficient));
    let mut dividend = Wide::from_u128(a.coefficient);
    dividend.multiply_power(10, scale);
    let (mut quotient, remainder) = dividend.divide_wide(b.coefficient);
    let mut exponent = preferred - scale as i32;
    if remainder != 0 {
        return round(sign, quotient, exponent, Tail::NonZero);
    }
    // The quotient is exact: zeros that only the scaling added are removed.
    while exponent < preferred {
        let mut shorter = quotient;
        if shorter.divide(10) != 0 {
            break;
        }
        quotient = shorter;
        exponent += 1;
    }
    round(sign, quotient, exponent, Tail::Zero)
}

/// Remainder by a non-zero number.
fn remainder(a: Finite, b: Finite) -> Decimal128 {
    let exponent = a.exponent.min(b.exponent);
    let coefficient = if a.exponent >= b.exponent {
        let distance = (a.exponent - b.exponent).unsigned_abs();
        // Four digits in each step: 10^34 * 10^4 fits in 128 bits, 10^34 * 10^5 does not.
        let mut rest = a.coefficient % b.coefficient;
        for _ in 0..distance / 4 {
            rest = rest * POWERS_OF_TEN[4] % b.coefficient;
        }
        rest * POWERS_OF_TEN[(distance % 4) as usize] % b.coefficient
    } else {
        let distance = (b.exponent - a.exponent).unsigned_abs();
        let scaled = POWERS_OF_TEN.get(distance as usize).and_then(|power| b.coefficient.checked_mul(*power));
        // A divisor beyond 128 bits is larger than any dividend.
        scaled.map_or(a.coefficient, |divisor| a.coefficient % divisor)
    };
    Decimal128::encode(Finite { sign: a.sign, coefficient, exponent })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(operation: impl Fn(Decimal128, Decimal128) -> Decimal128, cases: &[(&str, &str, &str)]) {
        for (a, b, expected) in cases {
            let parse = |text: &str| Decimal128::parse(text).expect(text);
            assert_eq!(operation(parse(a), parse(b)).to_string(), *expected, "{a} and {b}");
        }
    }

    #[test]
    fn sums() {
        check(
            Decimal128::add,
            &[
                ("0.1", "0.2", "0.3"),
                ("1.00", "2", "3.00"),
                ("1", "-1.0", "0.0"),
                ("-0", "-0", "-0"),
                ("1E+100", "1", "1.000000000000000000000000000000000E+100"),
                ("1E+40", "-1", "1.000000000000000000000000000000000E+40"),
                ("1E+34", "-1", "9999999999999999999999999999999999"),
                ("9999999999999999999999999999999999", "0.5", "1.000000000000000000000000000000000E+34"),
                ("9.999999999999999999999999999999999E+6144", "1E+6144", "Infinity"),
                ("Infinity", "-Infinity", "NaN"),
                ("-Infinity", "5", "-Infinity"),
            ],
        );
    }

    #[test]
    fn products_and_quotients() {
        check(
            Decimal128::multiply,
            &[
                ("1.5", "-2.0", "-3.00"),
                ("1E+6000", "1E+6000", "Infinity"),
                ("0", "-Infinity", "NaN"),
                ("-0", "5", "-0"),
            ],
        );
        check(
            Decimal128::divide,
            &[
                ("1", "3", "0.3333333333333333333333333333333333"),
                ("2", "3", "0.6666666666666666666666666666666667"),
                ("6", "2", "3"),
                ("1", "8", "0.125"),
                ("1.20", "2", "0.60"),
                ("1E+3", "1E-3", "1E+6"),
                ("1", "-0", "-Infinity"),
                ("0", "0", "NaN"),
                ("1E-6176", "2", "0E-6176"),
            ],
        );
    }

    #[test]
    fn remainders_have_the_dividends_sign() {
        check(
            Decimal128::remainder,
            &[
                ("5", "3", "2"),
                ("-5.5", "3", "-2.5"),
                ("5", "-3", "2"),
                ("1E+6000", "7", "1"),
                ("0.5", "1E+6000", "0.5"),
                ("5", "Infinity", "5"),
                ("5", "0", "NaN"),
                ("Infinity", "5", "NaN"),
            ],
        );
    }
}
