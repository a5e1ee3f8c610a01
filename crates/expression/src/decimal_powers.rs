//! Exponentials, logarithms and powers of decimals, equal to MongoDB's to the last digit.
//!
//! MongoDB's library computes these in IEEE 754 binary128, whose 113 bits are hardly more than 34 decimal digits. So
//! its last digit often differs from the exact value: the logarithm of the sixth power of two to base 2 is 5.999...
//! Each step here is computed with 90 digits, and rounded to 113 bits where the library rounds.

use crate::decimal::{ZERO_EXPONENT_MIN, zero_of_exponent};
use crate::decimal_functions::{Long, Working};
use bunko_bson::Decimal128;
use dec::Rounding;
use std::cmp::Ordering;

/// Range of the binary format: numbers beyond `10^4464` or `10^-4464` are scaled before taking the logarithm.
const SCALED_FROM: i32 = 4464;
/// Exponents beyond this are split: the exponential is then a product of two.
const EXPONENT_SCALED_FROM: i32 = 11_000;
/// A decimal cannot hold the exponential of a larger number.
const EXPONENT_MAX: i32 = 15_000;
/// Decimal places of the logarithm that a power uses; the remaining digits become a correction.
const LOGARITHM_PLACES: i32 = 28;
/// A power uses 34 significant digits of a logarithm below this, instead of decimal places.
const LOGARITHM_SMALL: &str = "3.6893488147419103232E-9";

/// `e^number`.
pub(crate) fn exp(number: Decimal128) -> Decimal128 {
    if number.is_nan() {
        return number;
    }
    if number.is_zero() {
        return Decimal128::from_i64(1);
    }
    if number.is_infinite() {
        return if number.is_negative() { Decimal128::ZERO } else { number };
    }
    let mut working = Working::new();
    let argument = working.number(number);
    working.exponential(argument)
}

/// The natural logarithm of a positive number.
pub(crate) fn ln(number: Decimal128) -> Decimal128 {
    logarithm(number, |working, logarithm| {
        let ten = working.natural_logarithm(10);
        let shift = working.times(ten, Long::from(SCALED_FROM));
        (logarithm, working.binary(shift))
    })
}

/// The logarithm of a positive number to base 10.
pub(crate) fn log10(number: Decimal128) -> Decimal128 {
    logarithm(number, |working, logarithm| {
        let ten = working.natural_logarithm(10);
        let inverse = working.over(Long::from(1), ten);
        let inverse = working.binary(inverse);
        let product = working.times(logarithm, inverse);
        (working.binary(product), Long::from(SCALED_FROM))
    })
}

/// The logarithm to a base. `in_base` converts a natural logarithm to the base, and also returns the logarithm of
/// `10^SCALED_FROM`.
fn logarithm(number: Decimal128, in_base: fn(&mut Working, Long) -> (Long, Long)) -> Decimal128 {
    if number.is_nan() || number.is_infinite() {
        return number;
    }
    let one = Decimal128::from_i64(1);
    if number.compare(one).is_eq() {
        return Decimal128::ZERO;
    }
    let mut working = Working::new();
    let exact = working.number(number);
    let magnitude = exact.exponent() + exact.digits() as i32 - 1;
    // A power of ten itself is within the limit.
    let is_power = working.power_of_ten(magnitude) == exact;
    let scale = if magnitude > SCALED_FROM || (magnitude == SCALED_FROM && !is_power) {
        1
    } else if magnitude < -SCALED_FROM {
        -1
    } else {
        0
    };
    if scale != 0 {
        let scaled = working.scaled(exact, -scale * SCALED_FROM);
        let (natural, _) = working.natural_logarithm_in_binary(scaled);
        let (logarithm, shift) = in_base(&mut working, natural);
        let signed_shift = working.times(shift, Long::from(scale));
        let sum = working.plus(logarithm, signed_shift);
        let rounded = working.binary(sum);
        return Working::narrow(rounded);
    }
    let (mut natural, rounded) = working.natural_logarithm_in_binary(exact);
    let distance = working.minus(rounded, Long::from(1));
    let distance = working.binary(distance);
    if working.size(distance) < working.half() {
        // Near 1 the logarithm is about the distance from 1, which the decimal has exactly.
        let exact_distance = working.number(number.subtract(one));
        let exact_distance = working.binary(exact_distance);
        let lost = working.minus(distance, exact_distance);
        let lost = working.binary(lost);
        let ratio = working.over(lost, rounded);
        let ratio = working.binary(ratio);
        let corrected = working.minus(natural, ratio);
        natural = working.binary(corrected);
    }
    let (logarithm, _) = in_base(&mut working, natural);
    Working::narrow(logarithm)
}

/// A power with all 34 digits, as MongoDB's library computes it; a zero has the least exponent and no sign.
pub(crate) fn power(base: Decimal128, exponent: Decimal128) -> Decimal128 {
    let one = Decimal128::from_i64(1);
    if exponent.is_zero() || base.compare(one).is_eq() {
        return one;
    }
    let power = special_power(base, exponent).unwrap_or_else(|| finite_power(base, exponent));
    let zero = zero_of_exponent(ZERO_EXPONENT_MIN);
    if power.is_zero() { zero } else { power.add(zero) }
}

/// The power where one of the numbers is NaN or infinite, or the base is zero; `None` for other powers.
fn special_power(base: Decimal128, exponent: Decimal128) -> Option<Decimal128> {
    let zero_or_infinity = |is_zero: bool| if is_zero { Decimal128::ZERO } else { Decimal128::from_f64(f64::INFINITY) };
    if base.is_nan() || exponent.is_nan() {
        return Some(Decimal128::NAN);
    }
    if exponent.is_infinite() {
        return Some(match base.abs().compare(Decimal128::from_i64(1)) {
            Ordering::Equal => Decimal128::from_i64(1),
            Ordering::Less => zero_or_infinity(!exponent.is_negative()),
            Ordering::Greater => zero_or_infinity(exponent.is_negative()),
        });
    }
    if base.is_infinite() {
        let power = zero_or_infinity(exponent.is_negative());
        return Some(if base.is_negative() && is_odd(exponent) { power.negate() } else { power });
    }
    base.is_zero().then(|| zero_or_infinity(!exponent.is_negative()))
}

fn is_odd(number: Decimal128) -> bool {
    let rest = number.remainder(Decimal128::from_i64(2));
    rest.abs().compare(Decimal128::from_i64(1)).is_eq()
}

/// A power. Neither number is NaN or infinite, and the base is not zero. A negative base with an exponent that is no
/// integer gives NaN.
fn finite_power(base: Decimal128, exponent: Decimal128) -> Decimal128 {
    let mut working = Working::new();
    let exact_exponent = working.number(exponent);
    let is_odd = match (base.is_negative(), exponent.round_to_integral().compare(exponent).is_eq()) {
        (true, false) => return Decimal128::NAN,
        (true, true) => is_odd(exponent),
        (false, _) => false,
    };
    let exact_base = working.number(base.abs());
    let logarithm = working.logarithm(exact_base);
    let kept = working.leading_part(logarithm);
    let product = working.times(exact_exponent, kept);
    let dominant = Working::narrow(product);
    let exact_product = working.times(exact_exponent, logarithm);
    let exact_dominant = working.number(dominant);
    let rest = working.minus(exact_product, exact_dominant);
    let exponential = if dominant.is_zero() { Decimal128::from_i64(1) } else { exp(dominant) };
    // As in MongoDB's library, a zero or infinite power of a negative base is positive.
    if exponential.is_zero() || exponential.is_infinite() {
        return exponential;
    }
    let exact_exponential = working.number(exponential);
    let correction = working.times(exact_exponential, rest);
    let power = working.plus(exact_exponential, correction);
    let power = Working::narrow(power);
    if is_odd { power.negate() } else { power }
}

impl Working {
    /// `e^number` for a number other than zero.
    fn exponential(&mut self, number: Long) -> Decimal128 {
        if number > Long::from(EXPONENT_MAX) {
            return Decimal128::parse("Infinity").unwrap_or(Decimal128::NAN);
        }
        if number < Long::from(-EXPONENT_MAX) {
            return Decimal128::parse("0E-6176").unwrap_or(Decimal128::ZERO);
        }
        let high = self.binary_towards(number, Rounding::Down);
        let low = self.minus(number, high);
        let low = self.binary(low);
        let shift = Long::from(EXPONENT_SCALED_FROM);
        let (reduced, factor) = if high > shift {
            (self.minus(high, shift), Some(shift))
        } else if high < -shift {
            (self.plus(high, shift), Some(-shift))
        } else {
            (high, None)
        };
        let reduced = self.binary(reduced);
        let exponential = self.grown(reduced);
        let exponential = self.binary(exponential);
        let correction = self.times(exponential, low);
        let correction = self.binary(correction);
        let sum = self.plus(exponential, correction);
        let sum = self.binary(sum);
        let narrow = Self::narrow(sum);
        let Some(factor) = factor else { return narrow };
        let factor = self.grown(factor);
        narrow.multiply(Self::narrow(factor))
    }

    /// The logarithm of a number rounded to binary128, and the rounded number.
    fn natural_logarithm_in_binary(&mut self, number: Long) -> (Long, Long) {
        let rounded = self.binary(number);
        let logarithm = self.logarithm(rounded);
        (self.binary(logarithm), rounded)
    }

    fn natural_logarithm(&mut self, number: i32) -> Long {
        self.logarithm(Long::from(number))
    }

    /// The part of a logarithm that a power uses before the correction.
    fn leading_part(&mut self, logarithm: Long) -> Long {
        let small = self.parse(LOGARITHM_SMALL);
        if self.size(logarithm) < small {
            let narrow = Self::narrow(logarithm);
            return self.number(narrow);
        }
        let shifted = self.scaled(logarithm, LOGARITHM_PLACES);
        let integer = self.integer(shifted, Rounding::Down);
        self.scaled(integer, -LOGARITHM_PLACES)
    }

    fn half(&mut self) -> Long {
        self.over(Long::from(1), Long::from(2))
    }

    fn power_of_ten(&mut self, exponent: i32) -> Long {
        self.parse(&format!("1E{exponent}"))
    }

    fn scaled(&mut self, number: Long, exponent: i32) -> Long {
        let factor = self.power_of_ten(exponent);
        self.times(number, factor)
    }
}
