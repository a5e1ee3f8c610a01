//! The series of numbers that `$bucketAuto` rounds its boundaries to.
//! Source: MongoDB manual, "$bucketAuto", "Granularity"; ISO 3 (Renard) and IEC 60063 (E series).

use bunko_bson::{Value, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};

/// One series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Granularity {
    /// Numbers of one decade, which the others repeat ten times larger or smaller.
    Series(Series),
    PowersOf2,
}

/// Every so many-th number of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Series {
    table: &'static [f64],
    step: usize,
}

const ONE_TWO_FIVE: &[f64] = &[10.0, 20.0, 50.0];
const E24: &[f64] = &[
    10.0, 11.0, 12.0, 13.0, 15.0, 16.0, 18.0, 20.0, 22.0, 24.0, 27.0, 30.0, 33.0, 36.0, 39.0, 43.0, 47.0, 51.0, 56.0,
    62.0, 68.0, 75.0, 82.0, 91.0,
];
const R80: &[f64] = &[
    1.00, 1.03, 1.06, 1.09, 1.12, 1.15, 1.18, 1.22, 1.25, 1.28, 1.32, 1.36, 1.40, 1.45, 1.50, 1.55, 1.60, 1.65, 1.70,
    1.75, 1.80, 1.85, 1.90, 1.95, 2.00, 2.06, 2.12, 2.18, 2.24, 2.30, 2.36, 2.43, 2.50, 2.58, 2.65, 2.72, 2.80, 2.90,
    3.00, 3.07, 3.15, 3.25, 3.35, 3.45, 3.55, 3.65, 3.75, 3.87, 4.00, 4.12, 4.25, 4.37, 4.50, 4.62, 4.75, 4.87, 5.00,
    5.15, 5.30, 5.45, 5.60, 5.80, 6.00, 6.15, 6.30, 6.50, 6.70, 6.90, 7.10, 7.30, 7.50, 7.75, 8.00, 8.25, 8.50, 8.75,
    9.00, 9.25, 9.50, 9.75,
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
    /// 40257 for a name that no series has.
    pub(super) fn parse(name: &str) -> Result<Self> {
        let (table, step) = match name {
            "POWERSOF2" => return Ok(Self::PowersOf2),
            "1-2-5" => (ONE_TWO_FIVE, 1),
            "R5" => (R80, 16),
            "R10" => (R80, 8),
            "R20" => (R80, 4),
            "R40" => (R80, 2),
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

    /// Whether a value can be rounded.
    /// # Errors
    /// 40258 for what is no number, 40259 for NaN, 40260 for a negative number.
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

    /// The least number of the series above this one; 0 of 0.
    pub(super) fn above(self, value: ValueRef<'_>) -> Value {
        let number = number::as_f64(value).unwrap_or(0.0);
        Value::Double(match self {
            _ if number == 0.0 || number.is_infinite() => number,
            Self::PowersOf2 => 2.0_f64.powf(number.log2().floor() + 1.0),
            Self::Series(series) => {
                let found = series.around(number).find(|candidate| *candidate > number);
                found.unwrap_or(f64::INFINITY)
            }
        })
    }

    /// The greatest number of the series below this one; 0 of 0.
    pub(super) fn below(self, value: ValueRef<'_>) -> Value {
        let number = number::as_f64(value).unwrap_or(0.0);
        Value::Double(match self {
            _ if number == 0.0 || number.is_infinite() => number,
            Self::PowersOf2 => 2.0_f64.powf(number.log2().ceil() - 1.0),
            Self::Series(series) => {
                series.around(number).take_while(|candidate| *candidate < number).last().unwrap_or(0.0)
            }
        })
    }
}

impl Series {
    /// Its numbers from below a number to above it.
    fn around(self, number: f64) -> impl Iterator<Item = f64> {
        let decade = (number / self.table[0]).log10().floor() as i32;
        (decade - 1..=decade + 1).flat_map(move |decade| {
            let scaled = move |number: &f64| {
                if decade < 0 { number / 10.0_f64.powi(-decade) } else { number * 10.0_f64.powi(decade) }
            };
            self.table.iter().step_by(self.step).map(scaled)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::order;

    #[test]
    fn numbers_are_rounded_away_from_themselves() {
        for (name, below, number, above) in [
            ("1-2-5", 0.5, 1.0, 2.0),
            ("R5", 16.0, 20.0, 25.0),
            ("E6", 680.0, 700.0, 1000.0),
            ("E192", 9.88, 9.9, 10.0),
            ("POWERSOF2", 4.0, 8.0, 16.0),
        ] {
            let series = Granularity::parse(name).expect("a series");
            let value = ValueRef::Double(number);
            assert!(order::equal(series.below(value).as_ref(), below.into()), "{name}");
            assert!(order::equal(series.above(value).as_ref(), above.into()), "{name}");
        }
    }
}
