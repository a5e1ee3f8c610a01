//! Inverse hyperbolic functions of doubles, to the last bit as the C library computes them.
//!
//! Rust's own functions differ: one value in three has another last digit than on a server that calls C.
//! Source: FreeBSD's msun, "s_asinh.c" and "e_acosh.c", and the documentation of glibc 2.39, which MongoDB 8.2 runs on.

use std::f64::consts::LN_2;

/// From here on, adding one to the square changes nothing: 2 to the power of 28.
const HUGE: f64 = 268_435_456.0;
/// Below this a function's value is its argument.
const TINY: f64 = 1.0 / HUGE;
/// The C library compares upper halves of doubles for `asinh`, so that its bounds lie a little higher than 2 and [`HUGE`].
const ASINH_ABOVE_TWO: f64 = f64::from_bits(0x4000_0001_0000_0000);
const ASINH_HUGE: f64 = f64::from_bits(0x41b0_0001_0000_0000);

/// The number with this hyperbolic sine.
pub(crate) fn asinh(number: f64) -> f64 {
    let size = number.abs();
    if size < TINY || !number.is_finite() {
        return number;
    }
    let angle = if size >= ASINH_HUGE {
        size.ln() + LN_2
    } else if size >= ASINH_ABOVE_TWO {
        (2.0 * size + 1.0 / ((size * size + 1.0).sqrt() + size)).ln()
    } else {
        let square = size * size;
        (size + square / (1.0 + (1.0 + square).sqrt())).ln_1p()
    };
    angle.copysign(number)
}

/// The number, not negative, with this hyperbolic cosine; NaN below one.
pub(crate) fn acosh(number: f64) -> f64 {
    if number >= HUGE {
        return number.ln() + LN_2;
    }
    if number > 2.0 {
        return (2.0 * number - 1.0 / (number + (number * number - 1.0).sqrt())).ln();
    }
    let above = number - 1.0;
    (above + (2.0 * above + above * above).sqrt()).ln_1p()
}

/// The number with this hyperbolic tangent; NaN beyond one.
pub(crate) fn atanh(number: f64) -> f64 {
    let size = number.abs();
    if size < TINY {
        return number;
    }
    let twice = size + size;
    let angle = if size < 0.5 {
        0.5 * (twice + twice * size / (1.0 - size)).ln_1p()
    } else {
        0.5 * (twice / (1.0 - size)).ln_1p()
    };
    angle.copysign(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bit_is_that_of_the_c_library() {
        let values: [(f64, f64); 7] = [
            (asinh(-2.676_310_483_162_789_3), -1.710_792_248_564_508_8),
            (asinh(-8.380_835_356_310_143), -2.822_635_227_056_448_8),
            (asinh(1e300), 691.468_675_078_773_6),
            (acosh(1.094_198_954_343_277), 0.430_711_291_845_804_6),
            (acosh(1.000_005_519_171_348_6), 0.003_322_398_612_973_291_8),
            (atanh(-7.433_328_017_653_078e-9), -7.433_328_017_653_078e-9),
            (atanh(-0.367_316_458_256_567_1), -0.385_317_472_605_165_36),
        ];
        for (position, (found, expected)) in values.into_iter().enumerate() {
            assert_eq!(found.to_bits(), expected.to_bits(), "{position}: {found} {expected}");
        }
    }

    #[test]
    fn ends_of_the_domains() {
        assert_eq!(acosh(1.0), 0.0);
        assert_eq!(acosh(f64::INFINITY), f64::INFINITY);
        assert_eq!(asinh(f64::NEG_INFINITY), f64::NEG_INFINITY);
        assert_eq!(atanh(1.0), f64::INFINITY);
        assert_eq!(atanh(-1.0), f64::NEG_INFINITY);
        assert!(asinh(-0.0).is_sign_negative() && atanh(-0.0).is_sign_negative());
        assert!(asinh(f64::NAN).is_nan() && acosh(f64::NAN).is_nan() && atanh(f64::NAN).is_nan());
    }
}
