//! Angles too large for a reduction by pi with the digits of [`Working`].
//!
//! An angle of `c * 10^e` is `c * 10^e * 2/pi` quarters of a circle. A hundred quarters are whole circles. So only the
//! last two digits of `10^e * 2/pi` before the point matter, and a few digits after it.

use super::{Long, Working};
use dec::{Context, Decimal, Rounding};

/// The digits of 2/pi after the point, as many as the largest decimal needs. Computed by Machin's formula.
const TWO_OVER_PI: &str = include_str!("two_over_pi.txt");
const DIGITS_AHEAD: usize = 2;
/// The factor costs 34 digits, the result has 34, and the rest are for angles close to a whole number of quarters.
const DIGITS_BEHIND: usize = 140;

/// Room for the product of a 34-digit number and the 142 digits of 2/pi that are used.
type Wide = Decimal<60>;
const WIDE_DIGITS: usize = 180;

/// The quarter of the circle that contains an angle, counted around zero, and the angle from the quarter's middle. The
/// exponent of `number` is at least 2.
pub(crate) fn reduced(working: &mut Working, number: Long) -> (i64, Long) {
    let mut context = Context::<Wide>::default();
    context.set_rounding(Rounding::HalfEven);
    context.set_precision(WIDE_DIGITS).expect("180 digits fit");
    let mut parse = |text: &str| context.parse(text).unwrap_or_else(|_| Wide::nan());
    let mut quarters = parse(&quarters_of_a_power(number.exponent()));
    let mut coefficient = number;
    coefficient.set_exponent(0);
    let coefficient = parse(&coefficient.to_string());
    context.mul(&mut quarters, &coefficient);
    let mut count = quarters;
    context.round(&mut count);
    context.sub(&mut quarters, &count);
    context.rem(&mut count, &Wide::from(4));
    let count = count.to_string().parse::<f64>().map_or(0, |quarter| quarter as i64);
    let rest = working.parse(&quarters.to_string());
    let quarter = working.quarter();
    (count.rem_euclid(4), working.times(rest, quarter))
}

/// `10^exponent * 2/pi`, modulo 100.
fn quarters_of_a_power(exponent: i32) -> String {
    let skipped = usize::try_from(exponent).unwrap_or(0).saturating_sub(DIGITS_AHEAD);
    let digits = TWO_OVER_PI.chars().filter(char::is_ascii_digit).skip(skipped);
    let mut text: String = digits.take(DIGITS_AHEAD + DIGITS_BEHIND).collect();
    text.insert(DIGITS_AHEAD, '.');
    text
}

#[cfg(test)]
mod tests {
    use crate::decimal_functions::{self, Function};
    use bunko_bson::Decimal128;

    fn at(function: Function, number: &str) -> String {
        decimal_functions::apply(Decimal128::parse(number).expect("a decimal"), function).to_string()
    }

    #[test]
    fn large_angles_agree_with_a_computation_by_thousands_of_digits() {
        use decimal_functions::{cos, sin, tan};
        for (number, sine, cosine, tangent) in [
            (
                "1E+51",
                "0.3164908703153921171333054555121406",
                "-0.9485955560759314714781558205548698",
                "-0.3336415275068590190649069931429268",
            ),
            (
                "1E+6144",
                "0.9168078385445297016578219657016703",
                "0.3993286706252226496850307517433643",
                "2.295872813512483383308592971482313",
            ),
            (
                "9.999999999999999999999999999999999E+6144",
                "0.5582907749092521238056875912416942",
                "-0.8296453523350967216289114223081673",
                "-0.6729270203682844056779140311680751",
            ),
        ] {
            assert_eq!([at(sin, number), at(cos, number), at(tan, number)], [sine, cosine, tangent], "{number}");
            let (less, sine) = (format!("-{number}"), format!("-{sine}"));
            assert_eq!([at(sin, &less), at(cos, &less)], [sine.as_str(), cosine], "{less}");
        }
    }
}
