//! `$stdDevPop` and `$stdDevSamp` over windows that lose documents.

use bunko_bson::{Value, ValueRef};
use bunko_errors::Result;
use bunko_expression::{Accumulator, Evaluated, Number, Removal, Sum};

/// Sum of numbers, and sum of squared differences from the mean. Both are compensated sums, so that removing a number
/// that was added leaves no rounding error behind.
/// Source: Chan, Golub, LeVeque, "Algorithms for Computing the Sample Variance", formula 1.5.
#[derive(Default)]
pub(super) struct Deviation {
    count: usize,
    /// Number of values that are infinite or NaN: with any, there is no deviation.
    others: usize,
    sum: Sum,
    squares: Sum,
    /// Number to subtract from the count: 1 for a sample (Bessel's correction), else 0.
    correction: usize,
}

impl Deviation {
    /// The deviation for a function name.
    pub(super) fn of(name: &str) -> Self {
        Self { correction: usize::from(name == "$stdDevSamp"), ..Self::default() }
    }

    /// The difference of a number from the mean, multiplied by the count.
    fn difference(&self, number: f64) -> f64 {
        let sum = Number::of(self.sum.value().as_ref()).map_or(0.0, Number::to_f64);
        self.count as f64 * number - sum
    }
}

impl Accumulator for Deviation {
    fn add(&mut self, value: Evaluated<'_>) -> Result<()> {
        let Some(number) = value.get().and_then(Number::of).map(Number::to_f64) else { return Ok(()) };
        if !number.is_finite() {
            self.others += 1;
            return Ok(());
        }
        let difference = self.difference(number);
        self.count += 1;
        self.sum.add(Number::Double(number));
        if self.count > 1 {
            let pairs = self.count as f64 * (self.count - 1) as f64;
            self.squares.add(Number::Double(difference * difference / pairs));
        }
        Ok(())
    }

    fn remove(&mut self, value: ValueRef<'_>) -> Removal {
        let Some(number) = Number::of(value).map(Number::to_f64) else { return Removal::Done };
        if !number.is_finite() {
            self.others -= 1;
            return Removal::Done;
        }
        if self.count <= 1 {
            (self.count, self.sum, self.squares) = (0, Sum::default(), Sum::default());
            return Removal::Done;
        }
        let difference = self.difference(number);
        self.count -= 1;
        self.sum.add(Number::Double(-number));
        let pairs = self.count as f64 * (self.count + 1) as f64;
        self.squares.add(Number::Double(-(difference * difference) / pairs));
        Removal::Done
    }

    fn value(&self) -> Value {
        let divisor = match self.count.checked_sub(self.correction) {
            None | Some(0) => return Value::Null,
            Some(_) if self.others > 0 => return Value::Null,
            Some(divisor) => divisor,
        };
        let squares = Number::of(self.squares.value().as_ref()).map_or(0.0, Number::to_f64);
        // MongoDB returns an integer zero for a single number here, and a double if no number leaves the window.
        if self.count == 1 || squares < 0.0 {
            return Value::Int32(0);
        }
        Value::Double((squares / divisor as f64).sqrt())
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>()
    }
}
