//! `$count`: the number of documents.

use super::{Accumulator, Form, Kind, Removal, Strings};
use crate::Evaluated;
use bunko_bson::{Value, ValueRef};
use bunko_errors::Result;

pub(super) const KIND: Kind = Kind { name: "$count", strings: Strings::AsBytes, form: Form::Empty, make: |_| make() };

pub(crate) fn make() -> Box<dyn Accumulator> {
    Box::<Count>::default()
}

#[derive(Default)]
struct Count(i64);

impl Accumulator for Count {
    fn add(&mut self, _value: Evaluated<'_>) -> Result<()> {
        self.0 += 1;
        Ok(())
    }

    fn remove(&mut self, _value: ValueRef<'_>) -> Removal {
        self.0 -= 1;
        Removal::Done
    }

    fn value(&self) -> Value {
        i32::try_from(self.0).map_or(Value::Int64(self.0), Value::Int32)
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>()
    }
}
