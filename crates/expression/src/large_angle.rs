//! Angles so large that a reduction by pi takes more of its digits than [`Working`] has.
//!
//! An angle of `c * 10^e` is `c * 10^e * 2/pi` quarters of a circle. A hundred quarters are whole circles, so of the digits of
//! `10^e * 2/pi` those before the last two ahead of the point do not matter, and few are needed behind it.

use crate::decimal_functions::{Long, Working};
use dec::{Context, Decimal, Rounding};

/// What stands behind the point of two over pi, as many digits as the largest decimal takes. Made by Machin's formula.
const TWO_OVER_PI: &str = include_str!("two_over_pi.txt");
const DIGITS_AHEAD: usize = 2;
/// 34 are lost to the factor, 34 are the answer's, and the others are for angles close to a whole number of quarters.
const DIGITS_BEHIND: usize = 140;

/// Room for the product of 34 digits and these.
type Wide = Decimal<60>;
const WIDE_DIGITS: usize = 180;

/// The quarter of the circle that an angle falls into, counted around zero, and the angle from its middle. The exponent of
/// `number` is two at least.
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

/// `10^exponent * 2/pi` without its hundreds.
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
