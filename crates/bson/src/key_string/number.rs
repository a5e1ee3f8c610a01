//! One encoding for all four number types, exact for each.
//!
//! The first byte is a class, negative classes mirrored around zero:
//! - `SMALL`, below 1, and `LARGE`, from 2^63: the largest double that is not above, shifted left by one bit;
//! - `WHOLE` + n, from 1 to below 2^63: the integer part in n + 1 bytes, shifted left by one bit, and where there is a
//!   fraction, eight more bytes with its first 63 binary digits, shifted left by one bit.
//!
//! The bit that each shift makes room for says whether more follows: first the fraction, then a decimal's exact
//! remainder, which only decimals between two doubles need. Among all numbers that agree before that bit, the number
//! without more is the least. The others are all decimals, and compare as decimals. Rejected: every number as a decimal
//! (a double has up to 767 digits), and every number as a double and a correction (ten bytes for the small integers
//! that most keys are).

use super::invert;
use crate::Decimal128;
use crate::decimal128::{DIGITS, EXPONENT_MIN, Finite, POWERS_OF_TEN, Parts, Sign};
use crate::number::TWO_TO_63;
use crate::order::bracket;

pub(super) const NAN: u8 = bracket::NUMBER;
pub(super) const ZERO: u8 = NAN + 12;
pub(super) const SMALL: u8 = ZERO + 1;
/// Class of an integer part of one byte. The next seven classes are for two to eight bytes.
pub(super) const WHOLE: u8 = ZERO + 2;
pub(super) const LARGE: u8 = WHOLE + 8;
pub(super) const INFINITY: u8 = LARGE + 1;

/// Bytes of a decimal fraction after an integer part: 33 digits.
pub(super) const FRACTION_BYTES: usize = 14;
/// Greatest number of digits after the point in a decimal that is at least 1.
pub(super) const FRACTION_DIGITS: u32 = DIGITS - 1;
/// Bytes of a left-aligned coefficient: 34 digits.
pub(super) const COEFFICIENT_BYTES: usize = 15;
/// Added to the exponents of first digits, to make them positive.
pub(super) const EXPONENT_BIAS: i32 = -EXPONENT_MIN;

/// The class of the number with the other sign and the same magnitude.
pub(super) fn mirror(class: u8) -> u8 {
    2 * ZERO - class
}

/// The lowest bit of an encoded part, which says whether another part follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum More {
    Nothing = 0,
    Follows = 1,
}

impl More {
    fn unless(exact: bool) -> Self {
        if exact { Self::Nothing } else { Self::Follows }
    }
}

pub(super) fn put_integer(buffer: &mut Vec<u8>, number: i64) {
    let start = buffer.len();
    match number.unsigned_abs() {
        0 => return buffer.push(ZERO),
        // Only the least integer has this magnitude.
        magnitude if magnitude > i64::MAX as u64 => put_double_bits(buffer, LARGE, TWO_TO_63, More::Nothing),
        magnitude => put_whole(buffer, magnitude, More::Nothing),
    }
    if number < 0 {
        negate(&mut buffer[start..]);
    }
}

pub(super) fn put_double(buffer: &mut Vec<u8>, number: f64) {
    let start = buffer.len();
    let magnitude = number.abs();
    if magnitude.is_nan() {
        return buffer.push(NAN);
    } else if magnitude == 0.0 {
        return buffer.push(ZERO);
    } else if magnitude < 1.0 {
        put_double_bits(buffer, SMALL, magnitude, More::Nothing);
    } else if magnitude < TWO_TO_63 {
        let whole = magnitude as u64;
        let fraction = magnitude - whole as f64;
        put_whole(buffer, whole, More::unless(fraction == 0.0));
        if fraction != 0.0 {
            // From 1 on, a double has at most 52 binary digits after the point.
            put_u64(buffer, (fraction * TWO_TO_63) as u64, More::Nothing);
        }
    } else if magnitude.is_finite() {
        put_double_bits(buffer, LARGE, magnitude, More::Nothing);
    } else {
        buffer.push(INFINITY);
    }
    if number < 0.0 {
        negate(&mut buffer[start..]);
    }
}

pub(super) fn put_decimal(buffer: &mut Vec<u8>, number: Decimal128) {
    let start = buffer.len();
    let sign = match number.parts() {
        Parts::NaN => return buffer.push(NAN),
        Parts::Finite(Finite { coefficient: 0, .. }) => return buffer.push(ZERO),
        Parts::Infinity(sign) => {
            buffer.push(INFINITY);
            sign
        }
        Parts::Finite(number) => {
            put_finite_decimal(buffer, number);
            number.sign
        }
    };
    if sign == Sign::Negative {
        negate(&mut buffer[start..]);
    }
}

/// A magnitude by its class.
enum Magnitude {
    Small,
    /// An integer part below 2^63, and a numerator over a power of ten.
    Whole {
        integer: u64,
        numerator: u128,
        denominator: u128,
    },
    Large,
}

fn magnitude(number: Finite) -> Magnitude {
    let power = POWERS_OF_TEN.get(number.exponent.unsigned_abs() as usize).copied();
    let (integer, numerator, denominator) = match (number.exponent, power) {
        (0.., None) => return Magnitude::Large,
        (_, None) => return Magnitude::Small,
        (0.., Some(power)) => match number.coefficient.checked_mul(power) {
            Some(integer) => (integer, 0, 1),
            None => return Magnitude::Large,
        },
        (_, Some(power)) => (number.coefficient / power, number.coefficient % power, power),
    };
    match i64::try_from(integer) {
        Ok(0) => Magnitude::Small,
        Ok(integer) => Magnitude::Whole { integer: integer.unsigned_abs(), numerator, denominator },
        Err(_) => Magnitude::Large,
    }
}

/// Appends a non-zero decimal's magnitude.
fn put_finite_decimal(buffer: &mut Vec<u8>, number: Finite) {
    let class = match magnitude(number) {
        Magnitude::Small => SMALL,
        Magnitude::Large => LARGE,
        Magnitude::Whole { integer, numerator, denominator } => {
            put_whole(buffer, integer, More::unless(numerator == 0));
            if numerator != 0 {
                put_decimal_fraction(buffer, numerator, denominator);
            }
            return;
        }
    };
    let floor = number.floor_f64();
    put_double_bits(buffer, class, floor.double, More::unless(floor.is_exact));
    if !floor.is_exact {
        let exponent = (number.adjusted_exponent() + EXPONENT_BIAS) as u16;
        buffer.extend_from_slice(&exponent.to_be_bytes());
        put_low_bytes(buffer, number.left_aligned(), COEFFICIENT_BYTES);
    }
}

/// Appends a fraction below 1 over at most 10^33, by long division in binary.
fn put_decimal_fraction(buffer: &mut Vec<u8>, numerator: u128, denominator: u128) {
    let mut remainder = numerator;
    let mut binary_digits = 0_u64;
    for _ in 0..63 {
        remainder *= 2;
        binary_digits *= 2;
        if remainder >= denominator {
            remainder -= denominator;
            binary_digits += 1;
        }
    }
    put_u64(buffer, binary_digits, More::unless(remainder == 0));
    if remainder != 0 {
        let scale = POWERS_OF_TEN[FRACTION_DIGITS as usize] / denominator;
        put_low_bytes(buffer, numerator * scale, FRACTION_BYTES);
    }
}

/// Appends an integer part from 1 to below 2^63 in as few bytes as hold it.
#[inline]
fn put_whole(buffer: &mut Vec<u8>, integer: u64, more: More) {
    let bits = integer << 1 | more as u64;
    let unused = bits.leading_zeros() as usize / 8;
    buffer.push(WHOLE + 7 - unused as u8);
    buffer.extend_from_slice(&bits.to_be_bytes()[unused..]);
}

fn put_double_bits(buffer: &mut Vec<u8>, class: u8, magnitude: f64, more: More) {
    buffer.push(class);
    put_u64(buffer, magnitude.to_bits(), more);
}

/// Appends a number below 2^63 and the bit after it.
fn put_u64(buffer: &mut Vec<u8>, number: u64, more: More) {
    buffer.extend_from_slice(&(number << 1 | more as u64).to_be_bytes());
}

fn put_low_bytes(buffer: &mut Vec<u8>, number: u128, count: usize) {
    buffer.extend_from_slice(&number.to_be_bytes()[16 - count..]);
}

/// Turns a magnitude's key into that of the negative number.
fn negate(key: &mut [u8]) {
    key[0] = mirror(key[0]);
    invert(&mut key[1..]);
}
