//! The series of preferred numbers to which `$bucketAuto` rounds its boundaries.
//! Source: MongoDB manual, "$bucketAuto", "Granularity"; ISO 3 (Renard) and IEC 60063 (E series).

use bunko_bson::{Decimal128, Value, ValueRef, number, order};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::Number;

/// A series of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Granularity {
    /// Numbers of one decade; other decades repeat them, scaled by powers of ten.
    Series(Series),
    PowersOf2,
}

/// A series of preferred numbers: every `step`-th number of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Series {
    table: &'static [f64],
    step: usize,
}

// The tables have the scale of MongoDB's tables, which decides how products with powers of ten are rounded.
const ONE_TWO_FIVE: &[f64] = &[10.0, 20.0, 50.0];
const E24: &[f64] = &[
    10.0, 11.0, 12.0, 13.0, 15.0, 16.0, 18.0, 20.0, 22.0, 24.0, 27.0, 30.0, 33.0, 36.0, 39.0, 43.0, 47.0, 51.0, 56.0,
    62.0, 68.0, 75.0, 82.0, 91.0,
];
const R5: &[f64] = &[10.0, 16.0, 25.0, 40.0, 63.0];
const R10: &[f64] = &[100.0, 125.0, 160.0, 200.0, 250.0, 315.0, 400.0, 500.0, 630.0, 800.0];
const R20: &[f64] = &[
    100.0, 112.0, 125.0, 140.0, 160.0, 180.0, 200.0, 224.0, 250.0, 280.0, 315.0, 355.0, 400.0, 450.0, 500.0, 560.0,
    630.0, 710.0, 800.0, 900.0,
];
// MongoDB omits 335, and its R80 table holds only numbers that are not in R40.
const R40: &[f64] = &[
    100.0, 106.0, 112.0, 118.0, 125.0, 132.0, 140.0, 150.0, 160.0, 170.0, 180.0, 190.0, 200.0, 212.0, 224.0, 236.0,
    250.0, 265.0, 280.0, 300.0, 315.0, 355.0, 375.0, 400.0, 425.0, 450.0, 475.0, 500.0, 530.0, 560.0, 600.0, 630.0,
    670.0, 710.0, 750.0, 800.0, 850.0, 900.0, 950.0,
];
const R80: &[f64] = &[
    103.0, 109.0, 115.0, 122.0, 128.0, 136.0, 145.0, 155.0, 165.0, 175.0, 185.0, 195.0, 206.0, 218.0, 230.0, 243.0,
    258.0, 272.0, 290.0, 307.0, 325.0, 345.0, 365.0, 387.0, 412.0, 437.0, 462.0, 487.0, 515.0, 545.0, 575.0, 615.0,
    650.0, 690.0, 730.0, 775.0, 825.0, 875.0, 925.0, 975.0,
];
const E192: &[f64] = &[
    100.0, 101.0, 102.0, 104.0, 105.0, 106.0, 107.0, 109.0, 110.0, 111.0, 113.0, 114.0, 115.0, 117.0, 118.0, 120.0,
    121.0, 123.0, 124.0, 126.0, 127.0, 129.0, 130.0, 132.0, 133.0, 135.0, 137.0, 138.0, 140.0, 142.0, 143.0, 145.0,
    147.0, 149.0, 150.0, 152.0, 154.0, 156.0, 158.0, 160.0, 162.0, 164.0, 165.0, 167.0, 169.0, 172.0, 174.0, 176.0,
    178.0, 180.0, 182.0, 184.0, 187.0, 189.0, 191.0, 193.0, 196.0, 198.0, 200.0, 203.0, 205.0, 208.0, 210.0, 213.0,
    215.0, 218.0, 221.0, 223.0, 226.0, 229.0, 232.0, 234.0, 237.0, 240.0, 243.0, 246.0, 249.0, 252.0, 255.0, 258.0,
    261.0, 264.0, 267.0, 271.0, 274.0, 277.0, 280.0, 284.0, 287.0, 291.0, 294.0, 298.0, 301.0, 305.0, 309.0, 312.0,
    316.0, 320.0, 324.0, 328.0, 332.0, 336.0, 340.0, 344.0, 348.0, 352.0, 357.0, 361.0, 365.0, 370.0, 374.0, 379.0,
    383.0, 388.0, 392.0, 397.0, 402.0, 407.0, 412.0, 417.0, 422.0, 427.0, 432.0, 437.0, 442.0, 448.0, 453.0, 459.0,
    464.0, 470.0, 475.0, 481.0, 487.0, 493.0, 499.0, 505.0, 511.0, 517.0, 523.0, 530.0, 536.0, 542.0, 549.0, 556.0,
    562.0, 569.0, 576.0, 583.0, 590.0, 597.0, 604.0, 612.0, 619.0, 626.0, 634.0, 642.0, 649.0, 657.0, 665.0, 673.0,
    681.0, 690.0, 698.0, 706.0, 715.0, 723.0, 732.0, 741.0, 750.0, 759.0, 768.0, 777.0, 787.0, 796.0, 806.0, 816.0,
    825.0, 835.0, 845.0, 856.0, 866.0, 876.0, 887.0, 898.0, 909.0, 920.0, 931.0, 942.0, 953.0, 965.0, 976.0, 988.0,
];

impl Granularity {
    /// # Errors
    /// 40257 for a name without a series.
    pub(super) fn parse(name: &str) -> Result<Self> {
        let (table, step) = match name {
            "POWERSOF2" => return Ok(Self::PowersOf2),
            "1-2-5" => (ONE_TWO_FIVE, 1),
            "R5" => (R5, 1),
            "R10" => (R10, 1),
            "R20" => (R20, 1),
            "R40" => (R40, 1),
            "R80" => (R80, 1),
            "E6" => (E24, 4),
            "E12" => (E24, 2),
            "E24" => (E24, 1),
            "E48" => (E192, 4),
            "E96" => (E192, 2),
            "E192" => (E192, 1),
            _ => return Err(Failure::new(ErrorCode(40257), format!("Unknown rounding granularity '{name}'"))),
        };
        Ok(Self::Series(Series { table, step }))
    }

    /// Checks that a value can be rounded.
    /// # Errors
    /// 40258 if it is not a number, 40259 for NaN, 40260 for a negative number.
    pub(super) fn check(value: ValueRef<'_>) -> Result<()> {
        let refuse = |code, what: &str| {
            let message = format!("$bucketAuto can specify a 'granularity' with {what}");
            Err(Failure::new(ErrorCode(code), message))
        };
        match number::as_f64(value) {
            None => {
                let found = value.kind().alias();
                refuse(40258, &format!("numeric boundaries only, but found a value with type: {found}"))
            }
            Some(value) if value.is_nan() => refuse(40259, "numeric boundaries only, but found a NaN"),
            Some(value) if value < 0.0 => refuse(40260, "non-negative numbers only, but found a negative number"),
            Some(_) => Ok(()),
        }
    }

    /// The smallest number of the series above `value`; 0 and infinities stay unchanged.
    pub(super) fn above(self, value: ValueRef<'_>) -> Value {
        self.rounded(value, Series::above, power_above)
    }

    /// The largest number of the series below `value`; 0 and infinities stay unchanged.
    pub(super) fn below(self, value: ValueRef<'_>) -> Value {
        self.rounded(value, Series::below, power_below)
    }

    /// The result of a series is a decimal for a decimal and a double otherwise; powers of 2 have the type of `$pow`.
    fn rounded(
        self,
        value: ValueRef<'_>,
        in_series: fn(Series, Number, Number) -> Number,
        in_powers: fn(Number) -> Value,
    ) -> Value {
        let number = match Number::of(value) {
            Some(number) if number.is_finite() && number.to_f64() != 0.0 => number,
            _ => return value.into(),
        };
        match (self, number) {
            (Self::Series(series), Number::Decimal(_)) => {
                in_series(series, number, Number::Decimal(Decimal128::from_i64(1))).into()
            }
            (Self::Series(series), _) => in_series(series, Number::Double(number.to_f64()), Number::Double(1.0)).into(),
            (Self::PowersOf2, _) => in_powers(number),
        }
    }
}

impl Series {
    fn numbers(self) -> impl DoubleEndedIterator<Item = Number> {
        self.table.iter().step_by(self.step).map(|number| Number::Double(*number))
    }

    /// The smallest and the largest number of the table.
    fn ends(self) -> (Number, Number) {
        let mut numbers = self.numbers();
        let first = numbers.next().unwrap_or(Number::Double(1.0));
        (first, numbers.next_back().unwrap_or(first))
    }

    fn above(self, number: Number, one: Number) -> Number {
        let (first, last) = self.ends();
        let mut scale = one;
        while !is_less(number, last.times(scale)) {
            scale = scale.times(Number::Int32(10));
        }
        while is_less(number, first.times(scale)) {
            let smaller = scale.over(10);
            if !is_less(number, last.times(smaller)) {
                return first.times(scale);
            }
            scale = smaller;
        }
        let mut scaled = self.numbers().map(|candidate| candidate.times(scale));
        scaled.find(|candidate| is_less(number, *candidate)).unwrap_or(last.times(scale))
    }

    fn below(self, number: Number, one: Number) -> Number {
        let (first, last) = self.ends();
        let mut scale = one;
        while !is_less(first.times(scale), number) {
            scale = scale.over(10);
        }
        while is_less(last.times(scale), number) {
            let larger = scale.times(Number::Int32(10));
            // Below the smallest number of the type, the scale stays 0.
            if !is_less(scale, larger) || !is_less(first.times(larger), number) {
                return last.times(scale);
            }
            scale = larger;
        }
        let mut scaled = self.numbers().rev().map(|candidate| candidate.times(scale));
        scaled.find(|candidate| is_less(*candidate, number)).unwrap_or(first.times(scale))
    }
}

fn is_less(left: Number, right: Number) -> bool {
    order::compare(Value::from(left).as_ref(), Value::from(right).as_ref()).is_lt()
}

/// Computes the smallest power of 2 above a positive number.
fn power_above(number: Number) -> Value {
    match number {
        Number::Int32(number) => power_of_2(bits(i64::from(number))),
        Number::Int64(number) => power_of_2(bits(number)),
        Number::Double(number) => power_of_2(number.log2().floor() as i32 + 1),
        Number::Decimal(_) => {
            let (mut power, mut exponent) = (Number::Decimal(Decimal128::from_i64(1)), 0);
            while !is_less(number, power) {
                (power, exponent) = (power.times(Number::Int32(2)), exponent + 1);
            }
            while is_less(number, power.over(2)) {
                (power, exponent) = (power.over(2), exponent - 1);
            }
            Number::decimal_power_of_2(exponent).into()
        }
    }
}

/// Computes the largest power of 2 below a positive number.
fn power_below(number: Number) -> Value {
    match number {
        Number::Int32(number) => power_of_2(bits(i64::from(number) - 1) - 1),
        Number::Int64(number) => power_of_2(bits(number - 1) - 1),
        Number::Double(number) => power_of_2(number.log2().ceil() as i32 - 1),
        Number::Decimal(_) => {
            let (mut power, mut exponent) = (Number::Decimal(Decimal128::from_i64(1)), 0);
            while is_less(power.times(Number::Int32(2)), number) {
                (power, exponent) = (power.times(Number::Int32(2)), exponent + 1);
            }
            while !is_less(power, number) {
                (power, exponent) = (power.over(2), exponent - 1);
            }
            Number::decimal_power_of_2(exponent).into()
        }
    }
}

/// Number of bits of a number that is not negative.
fn bits(number: i64) -> i32 {
    64 - number.leading_zeros() as i32
}

/// The power of 2 in the type that `$pow` returns.
fn power_of_2(exponent: i32) -> Value {
    match exponent {
        0..=30 => Value::Int32(1 << exponent),
        31..=62 => Value::Int64(1 << exponent),
        _ => Value::Double(2.0_f64.powf(f64::from(exponent))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_away_from_themselves() {
        for (name, below, number, above) in [
            ("1-2-5", "0.5", "1.0", "2.0"),
            ("R5", "16.0", "20.0", "25.0"),
            ("R40", "315.0", "335.0", "355.0"),
            ("R80", "0.975", "1.0", "1.03"),
            ("E6", "680.0", "700.0", "1000.0"),
            ("E192", "9.88", "9.9", "10.0"),
            ("POWERSOF2", "4", "8.0", "16"),
            ("POWERSOF2", "0.5", "1.0", "2"),
        ] {
            let series = Granularity::parse(name).expect("a series");
            let value = ValueRef::Double(number.parse().expect("a number"));
            assert_eq!(written(series.below(value)), below, "{name}");
            assert_eq!(written(series.above(value)), above, "{name}");
        }
    }

    #[test]
    fn the_least_and_greatest_numbers_end_the_search() {
        for name in ["R5", "E192", "POWERSOF2"] {
            let series = Granularity::parse(name).expect("a series");
            for number in [f64::MIN_POSITIVE, 5e-324, f64::MAX] {
                let (below, above) = (series.below(number.into()), series.above(number.into()));
                assert!(order::compare(below.as_ref(), number.into()).is_le(), "{name}");
                assert!(order::compare(above.as_ref(), number.into()).is_ge(), "{name}");
            }
        }
    }

    fn written(value: Value) -> String {
        match value {
            Value::Int32(number) => number.to_string(),
            Value::Double(number) => format!("{number:?}"),
            other => format!("{other:?}"),
        }
    }
}
