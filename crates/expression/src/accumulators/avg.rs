//! `$avg`: the mean of numbers; null without numbers.

use super::{Accumulator, Form, Kind, Removal, Strings};
use crate::Evaluated;
use crate::number::Number;
use crate::summation::Sum;
use bunko_bson::{Value, ValueRef};
use bunko_errors::Result;

pub(super) const KIND: Kind =
    Kind { name: "$avg", strings: Strings::AsBytes, form: Form::Expression, make: |_| make() };

/// Makes the accumulator of `$group`, which adds longs exactly.
pub(crate) fn make() -> Box<dyn Accumulator> {
    Box::<Mean>::default()
}

/// Makes an accumulator that adds longs as doubles, as MongoDB does outside groups.
pub(crate) fn make_of_doubles() -> Box<dyn Accumulator> {
    Box::new(Mean { longs: Longs::Rounded, ..Mean::default() })
}

#[derive(Default)]
struct Mean {
    sum: Sum,
    longs: Longs,
}

/// How 64-bit integers are added: as they are, or rounded to doubles.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Longs {
    #[default]
    Exact,
    Rounded,
}

impl Accumulator for Mean {
    fn add(&mut self, value: Evaluated<'_>) -> Result<()> {
        if let Some(number) = value.get().and_then(Number::of) {
            self.sum.add(match number {
                Number::Int64(long) if self.longs == Longs::Rounded => Number::Double(long as f64),
                number => number,
            });
        }
        Ok(())
    }

    fn remove(&mut self, value: ValueRef<'_>) -> Removal {
        let Some(number) = Number::of(value) else { return Removal::Done };
        self.sum.take_off(number)
    }

    fn value(&self) -> Value {
        self.sum.mean()
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>()
    }
}
