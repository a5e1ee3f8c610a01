//! Sums that do not depend on the order of their terms.

use crate::accumulators::Removal;
use crate::decimal::from_binary_exactly;
use crate::number::Number;
use bunko_bson::{Decimal128, Value};

/// A running sum of numbers of all types: integers exactly, doubles with their rounding errors kept beside
/// (Neumaier's and Knuth's compensated summation), decimals in decimal.
///
/// A group keeps a total for each of its sums, so a total is only as large as a cache line, 64 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Total {
    integers: i128,
    high: f64,
    low: f64,
    /// How many terms there are.
    count: u64,
    decimals: Option<Decimal128>,
    /// The widest type among the terms, which the sum keeps.
    widest: Widest,
}

/// A total whose terms can be taken off again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    total: Total,
    /// How many terms there are of each type.
    counts: [u64; 4],
}

/// The types of terms, from the narrowest on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Widest {
    #[default]
    Int32,
    Int64,
    Double,
    Decimal,
}

impl Widest {
    fn of(number: Number) -> Self {
        match number {
            Number::Int32(_) => Self::Int32,
            Number::Int64(_) => Self::Int64,
            Number::Double(_) => Self::Double,
            Number::Decimal(_) => Self::Decimal,
        }
    }
}

impl Sum {
    /// Adds a term.
    pub fn add(&mut self, number: Number) {
        self.total.add(number);
        self.counts[Widest::of(number) as usize] += 1;
    }

    /// Removes a term. An infinity or NaN cannot be removed, because the sum before it is lost.
    pub fn take_off(&mut self, number: Number) -> Removal {
        let total = &mut self.total;
        match number {
            Number::Int32(term) => total.integers -= i128::from(term),
            Number::Int64(term) => total.integers -= i128::from(term),
            Number::Double(term) if term.is_finite() && total.high.is_finite() => total.add_double(-term),
            Number::Decimal(term) if !term.is_nan() && !term.is_infinite() => {
                total.decimals = total.decimals.map(|sum| sum.subtract(term));
            }
            Number::Double(_) | Number::Decimal(_) => return Removal::Impossible,
        }
        total.count -= 1;
        self.counts[Widest::of(number) as usize] -= 1;
        let [_, longs, doubles, decimals] = self.counts;
        if doubles == 0 {
            (total.high, total.low) = (0.0, 0.0);
        }
        if decimals == 0 {
            total.decimals = None;
        }
        total.widest = match (longs, doubles, decimals) {
            (0, 0, 0) => Widest::Int32,
            (_, 0, 0) => Widest::Int64,
            (.., 0) => Widest::Double,
            _ => Widest::Decimal,
        };
        Removal::Done
    }

    /// As [`Total::value`].
    pub fn value(self) -> Value {
        self.total.value()
    }

    /// As [`Total::mean`].
    pub(crate) fn mean(self) -> Value {
        self.total.mean()
    }
}

impl Total {
    /// Adds a term.
    #[inline]
    pub fn add(&mut self, number: Number) {
        match number {
            Number::Int32(term) => self.integers += i128::from(term),
            Number::Int64(term) => self.integers += i128::from(term),
            Number::Double(term) => self.add_double(term),
            Number::Decimal(term) => self.decimals = Some(self.decimals.map_or(term, |sum| sum.add(term))),
        }
        self.count += 1;
        self.widest = self.widest.max(Widest::of(number));
    }

    /// The total of `times` as many terms; `None` unless all are integers, since sums of fractions depend on each addition.
    pub fn times(self, times: u64) -> Option<Self> {
        let integers = self.integers.checked_mul(i128::from(times)).filter(|_| self.widest <= Widest::Int64)?;
        Some(Self { integers, count: self.count.checked_mul(times)?, ..self })
    }

    fn add_double(&mut self, term: f64) {
        let sum = self.high + term;
        if sum.is_finite() {
            let part = sum - self.high;
            self.low += (self.high - (sum - part)) + (term - part);
        }
        self.high = sum;
    }

    /// Adds the integers to the sum of doubles, which is then the sum of both.
    fn add_integers(&mut self) {
        let high = self.integers as f64;
        self.add_double(high);
        let rest = self.integers - high as i128;
        self.add_double(rest as f64);
    }

    /// Returns the sum of the integers and doubles, without the decimals.
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
        match self.widest {
            Widest::Decimal => Value::Decimal128(self.to_decimal()),
            Widest::Double => Value::Double(self.to_f64()),
            Widest::Int32 | Widest::Int64 => match (i32::try_from(self.integers), i64::try_from(self.integers)) {
                (Ok(small), _) if self.widest == Widest::Int32 => Value::Int32(small),
                (_, Ok(integer)) => Value::Int64(integer),
                _ => Value::Double(self.to_f64()),
            },
        }
    }

    /// The mean of the terms: a decimal if any of them was, else a double; null without terms.
    pub fn mean(self) -> Value {
        match self.widest {
            _ if self.count == 0 => Value::Null,
            Widest::Decimal => Value::Decimal128(self.to_decimal().divide(Decimal128::from_i64(self.count as i64))),
            _ => Value::Double(self.to_f64() / self.count as f64),
        }
    }
}

const _: () = assert!(size_of::<Total>() == 64);
