//! Decimal text and arithmetic against decNumber, the reference implementation of decimal arithmetic.

use crate::properties::values::{finite_decimal, parse};
use bunko_bson::{Decimal128, Rounding};
use dec::{Context, Decimal128 as Reference};
use proptest::prelude::*;

fn reference(number: Decimal128) -> Reference {
    Context::<Reference>::default().parse(number.to_string()).expect("our text is a number")
}

/// The exponent of a number as it is written; zero if it is written without one.
fn scientific_exponent(number: Decimal128) -> i32 {
    number.to_string().split_once('E').map_or(0, |(_, text)| text.parse().expect("an exponent"))
}

/// Two operands. Their exponents are often near enough that their digits overlap.
fn pair() -> impl Strategy<Value = (Decimal128, Decimal128)> {
    let near = (finite_decimal(), finite_decimal(), -75..75).prop_map(|(a, b, distance)| {
        let shift: i32 = scientific_exponent(a) - scientific_exponent(b) + distance;
        let moved = b.multiply(parse(&format!("1E{}", shift.clamp(-6000, 6000))));
        if moved.is_infinite() { (a, b) } else { (a, moved) }
    });
    prop_oneof![near, (finite_decimal(), finite_decimal())]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn text_round_trips(number in finite_decimal()) {
        prop_assert!(parse(&number.to_string()).total_eq(number), "{}", number);
        prop_assert_eq!(reference(number).to_string(), number.to_string());
    }

    #[test]
    fn long_texts_round_as_the_reference_does(digits in "[0-9]{30,45}", point in 0_usize..30, exponent in -80..20) {
        let text = format!("{}.{}E{exponent}", &digits[..point], &digits[point..]);
        let expected = Context::<Reference>::default().parse(text.as_str()).expect("a number");
        prop_assert_eq!(parse(&text).to_string(), expected.to_string(), "{}", text);
    }

    #[test]
    fn sums_agree((a, b) in pair()) {
        prop_assert_eq!(a.add(b).to_string(), (reference(a) + reference(b)).to_string(), "{} + {}", a, b);
        prop_assert_eq!(a.subtract(b).to_string(), (reference(a) - reference(b)).to_string(), "{} - {}", a, b);
    }

    #[test]
    fn products_agree((a, b) in pair()) {
        prop_assert_eq!(a.multiply(b).to_string(), (reference(a) * reference(b)).to_string(), "{} * {}", a, b);
    }

    #[test]
    fn quotients_agree((a, b) in pair()) {
        prop_assume!(!b.is_zero());
        prop_assert_eq!(a.divide(b).to_string(), (reference(a) / reference(b)).to_string(), "{} / {}", a, b);
    }

    #[test]
    fn remainders_agree((a, b) in pair()) {
        prop_assume!(!b.is_zero());
        let expected = reference(a) % reference(b);
        // The reference refuses quotients beyond 34 digits, for which only the bounds are checked.
        let remainder = a.remainder(b);
        if expected.is_nan() {
            prop_assert!(remainder.abs().compare(b.abs()).is_lt());
        } else {
            prop_assert_eq!(remainder.to_string(), expected.to_string(), "{} mod {}", a, b);
        }
    }

    #[test]
    fn rounding_to_integers_agrees(number in finite_decimal()) {
        for (rounding, reference_rounding, ours) in [
            (Rounding::HalfEven, dec::Rounding::HalfEven, number.round_to_integral()),
            (Rounding::Floor, dec::Rounding::Floor, number.floor()),
            (Rounding::Ceiling, dec::Rounding::Ceiling, number.ceil()),
            (Rounding::Truncate, dec::Rounding::Down, number.trunc()),
        ] {
            let mut context = Context::<Reference>::default();
            context.set_rounding(reference_rounding);
            prop_assert_eq!(ours.to_string(), context.round(reference(number)).to_string(), "{}, {:?}", number, rounding);
        }
    }

    #[test]
    fn doubles_become_their_fifteen_digits(number in any::<f64>()) {
        let decimal = Decimal128::from_f64(number);
        prop_assert_eq!(decimal.to_f64(), format!("{number:.14e}").parse::<f64>().expect("a number"));
    }
}
