//! Decimals and binary doubles, with exact comparison.

use super::limbs::Limbs;
use super::{Decimal128, Finite, Parts, Sign};
use std::cmp::Ordering;
use std::io::Write;

/// Holds both sides of a comparison with a neighbouring double: 5^357 times 53 bits has 882 bits, 10^34 * 5^308 has
/// 829.
type Aligned = Limbs<16>;

/// The largest double that is not above a magnitude.
pub(crate) struct Floor {
    /// Finite and not negative; zero below the smallest subnormal.
    pub(crate) double: f64,
    /// Whether the double is the magnitude itself.
    pub(crate) is_exact: bool,
}

impl Decimal128 {
    /// The double, rounded to 15 significant digits. All of them are kept: 2.5 becomes `2.50000000000000`. Zeros get
    /// exponent 0.
    /// Source: MongoDB manual, `$toDecimal`.
    pub fn from_f64(number: f64) -> Self {
        if number.is_nan() {
            return Self::NAN;
        }
        let sign = if number.is_sign_negative() { Sign::Negative } else { Sign::Positive };
        if number.is_infinite() {
            return Self::infinity(sign);
        }
        if number == 0.0 {
            return Self::encode(Finite { sign, coefficient: 0, exponent: 0 });
        }
        // All doubles are within the range of decimals.
        Self::parse(&format!("{number:.14e}")).unwrap_or(Self::NAN)
    }

    /// The nearest double; infinite beyond the range of doubles, zero below it.
    pub fn to_f64(self) -> f64 {
        match self.parts() {
            Parts::NaN => f64::NAN,
            Parts::Infinity(Sign::Positive) => f64::INFINITY,
            Parts::Infinity(Sign::Negative) => f64::NEG_INFINITY,
            Parts::Finite(number) if number.sign == Sign::Negative => -nearest_magnitude(number),
            Parts::Finite(number) => nearest_magnitude(number),
        }
    }

    /// Exact numeric order with a double; `NaN` is lowest and equal to itself.
    pub(crate) fn compare_f64(self, other: f64) -> Ordering {
        let Parts::Finite(number) = self.parts() else { return compare_doubles(self.to_f64(), other) };
        if number.coefficient == 0 || !other.is_finite() {
            return compare_doubles(0.0, other);
        }
        let (negative, other_negative) = (number.sign == Sign::Negative, other < 0.0);
        if negative != other_negative || other == 0.0 {
            return number.sign.direct(Ordering::Greater);
        }
        let floor = number.floor_f64();
        let above_floor = if floor.is_exact { Ordering::Equal } else { Ordering::Greater };
        number.sign.direct(compare_doubles(floor.double, other.abs()).then(above_floor))
    }
}

impl Finite {
    /// Rounds the magnitude of a non-zero number down to a double.
    pub(crate) fn floor_f64(self) -> Floor {
        let nearest = nearest_magnitude(self);
        if nearest.is_infinite() {
            return Floor { double: f64::MAX, is_exact: false };
        }
        if nearest == 0.0 {
            return Floor { double: 0.0, is_exact: false };
        }
        match compare_to_neighbour(self, nearest) {
            Ordering::Equal => Floor { double: nearest, is_exact: true },
            Ordering::Greater => Floor { double: nearest, is_exact: false },
            Ordering::Less => Floor { double: nearest.next_down(), is_exact: false },
        }
    }
}

/// The order of doubles. `NaN` is lowest and equal to itself, and `-0` is equal to `0`.
#[inline]
pub(crate) fn compare_doubles(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
}

fn nearest_magnitude(number: Finite) -> f64 {
    // 34 digits, 'e' and a signed exponent of four digits. The standard library parses them with exact rounding.
    let mut text = [0_u8; 48];
    let mut rest = &mut text[..];
    let written = write!(rest, "{}e{}", number.coefficient, number.exponent);
    debug_assert!(written.is_ok(), "coefficient beyond 34 digits");
    let unused = rest.len();
    let text = &text[..text.len() - unused];
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
}

/// Compares a magnitude with its nearest double, which is neither zero nor infinite, in whole numbers.
fn compare_to_neighbour(number: Finite, double: f64) -> Ordering {
    let bits = double.to_bits();
    let (biased, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
    let (mantissa, power_of_two) = if biased == 0 { (fraction, -1074) } else { (fraction | 1 << 52, biased - 1075) };
    let (mut left, mut right) = (Aligned::from_u128(number.coefficient), Aligned::from_u128(u128::from(mantissa)));
    let fives = number.exponent.unsigned_abs();
    if number.exponent >= 0 {
        left.multiply_power(5, fives);
    } else {
        right.multiply_power(5, fives);
    }
    let shift = number.exponent - power_of_two;
    if shift >= 0 {
        left.shift_left(shift.unsigned_abs());
    } else {
        right.shift_left(shift.unsigned_abs());
    }
    left.cmp(&right)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Decimal128 {
        Decimal128::parse(text).expect(text)
    }

    #[test]
    fn doubles_keep_fifteen_digits() {
        for (number, text) in [
            (2.5, "2.50000000000000"),
            (0.1, "0.100000000000000"),
            (-1e20, "-1.00000000000000E+20"),
            (0.0, "0"),
            (-0.0, "-0"),
            (5e-324, "4.94065645841247E-324"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(Decimal128::from_f64(number).to_string(), text);
        }
    }

    #[test]
    fn comparison_with_doubles_is_exact() {
        // 0.1 as a double is slightly above one tenth.
        assert_eq!(parse("0.1").compare_f64(0.1), Ordering::Less);
        assert_eq!(parse("-0.1").compare_f64(-0.1), Ordering::Greater);
        assert_eq!(parse("0.5").compare_f64(0.5), Ordering::Equal);
        assert_eq!(parse("9007199254740993").compare_f64(9_007_199_254_740_992.0), Ordering::Greater);
        assert_eq!(parse("1E+6000").compare_f64(f64::MAX), Ordering::Greater);
        assert_eq!(parse("1E+6000").compare_f64(f64::INFINITY), Ordering::Less);
        assert_eq!(parse("1E-6176").compare_f64(5e-324), Ordering::Less);
        assert_eq!(parse("1E-6176").compare_f64(-0.0), Ordering::Greater);
        assert_eq!(parse("-0").compare_f64(0.0), Ordering::Equal);
        assert_eq!(parse("NaN").compare_f64(f64::NAN), Ordering::Equal);
        assert_eq!(parse("-Infinity").compare_f64(f64::NAN), Ordering::Greater);
    }

    #[test]
    fn extremes_fit_the_aligned_width() {
        for text in [
            "1.797693134862315708145274237317044E+308",
            "4.940656458412465441765687928682214E-324",
            "2.470328229206232720882843964341107E-324",
            "2.225073858507201383090232717332404E-308",
        ] {
            for number in [parse(text), parse(text).negate()] {
                assert_ne!(number.compare_f64(number.to_f64()), Ordering::Equal, "{text}");
            }
        }
    }
}
