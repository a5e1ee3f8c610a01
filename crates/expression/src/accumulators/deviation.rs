//! Standard deviation in one pass.

use super::Accumulator;
use crate::Evaluated;
use crate::number::Number;
use bunko_bson::Value;
use bunko_errors::Result;

/// Welford's running mean and sum of squared differences. Source: Knuth, TAOCP 2, 4.2.2.
pub(super) struct Deviation {
    count: u64,
    mean: f64,
    squares: f64,
    /// Subtracted from the count: 1 for a sample (Bessel's correction), else 0.
    correction: u64,
}

impl Deviation {
    pub(super) fn new(correction: u64) -> Self {
        Self { count: 0, mean: 0.0, squares: 0.0, correction }
    }
}

impl Accumulator for Deviation {
    fn add(&mut self, value: Evaluated<'_>) -> Result<()> {
        let Some(number) = value.get().and_then(Number::of) else { return Ok(()) };
        let number = number.to_f64();
        self.count += 1;
        let difference = number - self.mean;
        self.mean += difference / self.count as f64;
        self.squares += difference * (number - self.mean);
        Ok(())
    }

    fn value(&self) -> Value {
        if self.count <= self.correction {
            return Value::Null;
        }
        Value::Double((self.squares / (self.count - self.correction) as f64).sqrt())
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>()
    }
}
