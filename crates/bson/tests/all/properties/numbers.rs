//! Compares numbers of all types with their exact decimal expansions.

use crate::properties::values::{neighbours, number};
use bunko_bson::number::{as_f64, as_i64_exact, truncate_to_i64};
use bunko_bson::{Value, order};
use proptest::collection::vec;
use proptest::prelude::*;
use std::cmp::Ordering;

/// A number with all its digits: before the point without leading zeros, after it without trailing zeros.
#[derive(Debug, PartialEq)]
enum Exact {
    NaN,
    NegativeInfinity,
    Finite { negative: bool, whole: String, fraction: String },
    Infinity,
}

impl Exact {
    fn of(value: &Value) -> Self {
        match value {
            Value::Int32(number) => Self::read(&number.to_string()),
            Value::Int64(number) => Self::read(&number.to_string()),
            // No double has more than 1074 binary places, and so no more decimal places.
            Value::Double(number) => Self::read(&format!("{number:.1074}")),
            Value::Decimal128(number) => Self::read(&number.to_string()),
            other => panic!("{other:?} is not a number"),
        }
    }

    fn read(text: &str) -> Self {
        let (negative, magnitude) = text.strip_prefix('-').map_or((false, text), |magnitude| (true, magnitude));
        match (magnitude, negative) {
            ("NaN", _) => return Self::NaN,
            ("inf" | "Infinity", true) => return Self::NegativeInfinity,
            ("inf" | "Infinity", false) => return Self::Infinity,
            _ => {}
        }
        let (digits, exponent) = magnitude.split_once('E').unwrap_or((magnitude, "0"));
        let exponent: i32 = exponent.parse().expect("an exponent");
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let point = whole.len() as i32 + exponent;
        let mut digits = format!("{whole}{fraction}");
        digits.insert_str(0, &"0".repeat(usize::try_from(-point).unwrap_or(0)));
        let point = usize::try_from(point).unwrap_or(0);
        let zeros = point.saturating_sub(digits.len());
        digits.push_str(&"0".repeat(zeros));
        let (whole, fraction) = digits.split_at(point);
        let whole = whole.trim_start_matches('0').to_owned();
        let fraction = fraction.trim_end_matches('0').to_owned();
        let is_zero = whole.is_empty() && fraction.is_empty();
        Self::Finite { negative: negative && !is_zero, whole, fraction }
    }

    fn compare(&self, other: &Self) -> Ordering {
        let class = |number: &Self| match number {
            Self::NaN => 0,
            Self::NegativeInfinity => 1,
            Self::Finite { negative: true, .. } => 2,
            Self::Finite { negative: false, .. } => 3,
            Self::Infinity => 4,
        };
        let (
            Self::Finite { negative, whole, fraction },
            Self::Finite { whole: other_whole, fraction: other_fraction, .. },
        ) = (self, other)
        else {
            return class(self).cmp(&class(other));
        };
        let magnitudes =
            whole.len().cmp(&other_whole.len()).then(whole.cmp(other_whole)).then(fraction.cmp(other_fraction));
        class(self).cmp(&class(other)).then(if *negative { magnitudes.reverse() } else { magnitudes })
    }

    /// The digits before the point as an integer, if it fits 64 bits.
    fn whole(&self) -> Option<i64> {
        let Self::Finite { negative, whole, .. } = self else { return None };
        let magnitude: i128 = format!("0{whole}").parse().ok()?;
        i64::try_from(if *negative { -magnitude } else { magnitude }).ok()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn comparison_agrees_with_written_out_digits(numbers in prop_oneof![vec(number(), 2..4), neighbours(2..6)]) {
        let exact: Vec<_> = numbers.iter().map(Exact::of).collect();
        for (a, exact_a) in numbers.iter().zip(&exact) {
            for (b, exact_b) in numbers.iter().zip(&exact) {
                let expected = exact_a.compare(exact_b);
                prop_assert_eq!(order::compare(a.as_ref(), b.as_ref()), expected, "{:?} and {:?}", a, b);
            }
        }
    }

    #[test]
    fn integers_are_read_exactly(value in number()) {
        let exact = Exact::of(&value);
        prop_assert_eq!(truncate_to_i64(value.as_ref()), exact.whole());
        let is_whole = matches!(&exact, Exact::Finite { fraction, .. } if fraction.is_empty());
        prop_assert_eq!(as_i64_exact(value.as_ref()), exact.whole().filter(|_| is_whole));
    }

    #[test]
    fn the_nearest_double_is_near(value in number()) {
        let double = as_f64(value.as_ref()).expect("a number");
        let between = |low: f64, high: f64| {
            order::compare(Value::Double(low).as_ref(), value.as_ref()).is_le()
                && order::compare(value.as_ref(), Value::Double(high).as_ref()).is_le()
        };
        prop_assert!(double.is_nan() || between(double.next_down(), double.next_up()), "{:?} became {}", value, double);
    }
}
