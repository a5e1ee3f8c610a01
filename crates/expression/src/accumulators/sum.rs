//! `$sum`: the sum of numbers; other types are ignored.

use super::{Accumulator, Form, Kind, Removal, Strings};
use crate::Evaluated;
use crate::number::Number;
use crate::summation::Sum;
use bunko_bson::{Value, ValueRef};
use bunko_errors::Result;

pub(super) const KIND: Kind =
    Kind { name: "$sum", strings: Strings::AsBytes, form: Form::Expression, make: |_| make() };

pub(crate) fn make() -> Box<dyn Accumulator> {
    Box::<Sum>::default()
}

impl Accumulator for Sum {
    fn add(&mut self, value: Evaluated<'_>) -> Result<()> {
        if let Some(number) = value.get().and_then(Number::of) {
            Sum::add(self, number);
        }
        Ok(())
    }

    fn remove(&mut self, value: ValueRef<'_>) -> Removal {
        Number::of(value).map_or(Removal::Done, |number| self.take_off(number))
    }

    fn value(&self) -> Value {
        Sum::value(*self)
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>()
    }
}
