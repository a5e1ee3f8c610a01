//! Decimal functions beyond the four operations: roots, special cases of powers, rounding to places.

use bunko_bson::Decimal128;
use dec::{Context, Decimal, Rounding};

/// Room for 36 digits, of which 34 are used.
pub(crate) type Wide = Decimal<12>;
/// The library's context of an operation.
pub(crate) type Arithmetic = Context<Wide>;

/// Digits and exponent range of an IEEE 754 decimal128.
pub(crate) const DIGITS: usize = 34;
pub(crate) const EXPONENT_MAX: isize = 6144;
pub(crate) const EXPONENT_MIN: isize = -6143;
/// The least exponent that a coefficient of 34 digits can have.
pub(crate) const ZERO_EXPONENT_MIN: i32 = -6176;

fn arithmetic() -> Arithmetic {
    let mut context = Arithmetic::default();
    context.set_rounding(Rounding::HalfEven);
    // All three are within the limits of the library.
    context.set_precision(DIGITS).expect("34 digits fit");
    context.set_max_exponent(EXPONENT_MAX).expect("in range");
    context.set_min_exponent(EXPONENT_MIN).expect("in range");
    context
}

/// Converts through text, because the library packs decimals densely and BSON as binary integers.
fn widen(context: &mut Arithmetic, number: Decimal128) -> Wide {
    context.parse(number.to_string()).unwrap_or_else(|_| Wide::nan())
}

fn narrow(number: &Wide) -> Decimal128 {
    Decimal128::parse(&number.to_string()).unwrap_or_else(|| Decimal128::from_f64(f64::NAN))
}

/// Applies a function of the library to one decimal.
pub(crate) fn unary(number: Decimal128, function: fn(&mut Arithmetic, &mut Wide)) -> Decimal128 {
    let mut context = arithmetic();
    let mut wide = widen(&mut context, number);
    function(&mut context, &mut wide);
    narrow(&wide)
}

/// The next integer in the direction of `rounding`; NaN from 10^34 on, where 34 digits end before the point.
pub(crate) fn integer(number: Decimal128, rounding: bunko_bson::Rounding) -> Decimal128 {
    let beyond = Decimal128::parse("1E34").unwrap_or(Decimal128::NAN);
    if number.abs().compare(beyond).is_ge() { Decimal128::NAN } else { quantized(number, 0, rounding) }
}

/// Rounds to a multiple of `10^exponent` and writes that exponent, as far as 34 digits reach: 1.2 at -3 is 1.200.
pub(crate) fn quantized(number: Decimal128, exponent: i32, rounding: bunko_bson::Rounding) -> Decimal128 {
    let rounded = number.round_to_exponent(exponent, rounding);
    // Addition takes the lower exponent. The zero has the number's sign, so that -0 stays -0.
    let zero = if exponent == 0 { Decimal128::ZERO } else { zero_of_exponent(exponent) };
    rounded.add(if rounded.is_negative() { zero.negate() } else { zero })
}

pub(crate) fn zero_of_exponent(exponent: i32) -> Decimal128 {
    Decimal128::parse(&format!("0E{exponent}")).unwrap_or(Decimal128::ZERO)
}

/// The exact value of a double, rounded to 34 digits: 2.675 becomes a little less than 2.675.
pub(crate) fn from_binary(number: f64) -> Decimal128 {
    Decimal128::parse(&format!("{number:.33e}")).unwrap_or_else(|| Decimal128::from_f64(number))
}

/// The exact value of a double, without trailing zeros: 2.5, and 100 for 100.
pub(crate) fn from_binary_exactly(number: f64) -> Decimal128 {
    if !number.is_finite() {
        return Decimal128::from_f64(number);
    }
    let text = format!("{number:.33e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let shortest = format!("{}e{exponent}", mantissa.trim_end_matches('0').trim_end_matches('.'));
    let shortest = Decimal128::parse(&shortest).unwrap_or_else(|| from_binary(number));
    if number == 0.0 { shortest } else { shortest.add(Decimal128::ZERO) }
}

/// A double converted as MongoDB does: to 15 significant digits.
pub(crate) fn from_double(number: f64) -> Decimal128 {
    if !number.is_finite() {
        return Decimal128::from_f64(number);
    }
    if number == 0.0 && number.is_sign_negative() {
        return Decimal128::ZERO.negate();
    }
    Decimal128::parse(&format!("{number:.14e}")).unwrap_or_else(|| Decimal128::from_f64(number))
}
