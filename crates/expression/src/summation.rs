//! Sums that do not depend on the order of their terms.

use crate::accumulators::Removal;
use crate::decimal::from_binary_exactly;
use crate::number::Number;
use bunko_bson::{Decimal128, Value};

/// A running sum of numbers of all types: integers exactly, doubles with their rounding errors kept beside
/// (Neumaier's and Knuth's compensated summation), decimals in decimal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    integers: i128,
    high: f64,
    low: f64,
    decimals: Option<Decimal128>,
    /// How many terms there are of each type.
    counts: [u64; 4],
}

/// The types of terms, from the narrowest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Widest {
    Int32,
    Int64,
    Double,
    Decimal,
}

impl Sum {
    /// Adds a term.
    pub fn add(&mut self, number: Number) {
        let kind = match number {
            Number::Int32(term) => {
                self.integers += i128::from(term);
                Widest::Int32
            }
            Number::Int64(term) => {
                self.integers += i128::from(term);
                Widest::Int64
            }
            Number::Double(term) => {
                self.add_double(term);
                Widest::Double
            }
            Number::Decimal(term) => {
                self.decimals = Some(self.decimals.map_or(term, |sum| sum.add(term)));
                Widest::Decimal
            }
        };
        self.counts[kind as usize] += 1;
    }

    /// The widest type among the terms, which the sum keeps.
    fn widest(&self) -> Widest {
        let [_, longs, doubles, decimals] = self.counts;
        match (longs, doubles, decimals) {
            (0, 0, 0) => Widest::Int32,
            (_, 0, 0) => Widest::Int64,
            (.., 0) => Widest::Double,
            _ => Widest::Decimal,
        }
    }

    /// Takes a term off. An infinity or NaN cannot be: what they were added to is lost.
    pub fn take_off(&mut self, number: Number) -> Removal {
        let kind = match number {
            Number::Int32(term) => {
                self.integers -= i128::from(term);
                Widest::Int32
            }
            Number::Int64(term) => {
                self.integers -= i128::from(term);
                Widest::Int64
            }
            Number::Double(term) if term.is_finite() && self.high.is_finite() => {
                self.add_double(-term);
                Widest::Double
            }
            Number::Decimal(term) if !term.is_nan() && !term.is_infinite() => {
                self.decimals = self.decimals.map(|sum| sum.subtract(term));
                Widest::Decimal
            }
            Number::Double(_) | Number::Decimal(_) => return Removal::Impossible,
        };
        self.counts[kind as usize] -= 1;
        if self.counts[Widest::Double as usize] == 0 {
            (self.high, self.low) = (0.0, 0.0);
        }
        if self.counts[Widest::Decimal as usize] == 0 {
            self.decimals = None;
        }
        Removal::Done
    }

    fn add_double(&mut self, term: f64) {
        let sum = self.high + term;
        if sum.is_finite() {
            let part = sum - self.high;
            self.low += (self.high - (sum - part)) + (term - part);
        }
        self.high = sum;
    }

    /// Integers among the doubles.
    fn add_integers(&mut self) {
        let high = self.integers as f64;
        self.add_double(high);
        let rest = self.integers - high as i128;
        self.add_double(rest as f64);
    }

    /// The sum of all but decimals.
    fn to_f64(mut self) -> f64 {
        self.add_integers();
        // An infinity minus its own error would be NaN.
        if self.high.is_finite() { self.high + self.low } else { self.high }
    }

    fn to_decimal(mut self) -> Decimal128 {
        let decimals = self.decimals.unwrap_or_else(|| Decimal128::from_i64(0));
        if self.high == 0.0
            && let Ok(integers) = i64::try_from(self.integers)
        {
            return decimals.add(Decimal128::from_i64(integers));
        }
        self.add_integers();
        if !self.high.is_finite() {
            return decimals.add(Decimal128::from_f64(self.high));
        }
        decimals.add(from_binary_exactly(self.high).add(from_binary_exactly(self.low)))
    }

    /// The sum in the widest type of its terms; integers that leave 64 bits become a double.
    pub fn value(self) -> Value {
        match self.widest() {
            Widest::Decimal => Value::Decimal128(self.to_decimal()),
            Widest::Double => Value::Double(self.to_f64()),
            Widest::Int32 | Widest::Int64 => match (i32::try_from(self.integers), i64::try_from(self.integers)) {
                (Ok(small), _) if self.widest() == Widest::Int32 => Value::Int32(small),
                (_, Ok(integer)) => Value::Int64(integer),
                _ => Value::Double(self.to_f64()),
            },
        }
    }

    /// The sum over `count`: a decimal if any term was, else a double; null of nothing.
    pub(crate) fn mean(self, count: i64) -> Value {
        match self.widest() {
            _ if count == 0 => Value::Null,
            Widest::Decimal => Value::Decimal128(self.to_decimal().divide(Decimal128::from_i64(count))),
            _ => Value::Double(self.to_f64() / count as f64),
        }
    }
}
