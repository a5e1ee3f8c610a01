//! `$last`: the value of the last document.

use super::{Accumulator, Form, Kind, Strings, value_bytes};
use crate::Evaluated;
use bunko_bson::Value;
use bunko_errors::Result;

pub(super) const KIND: Kind =
    Kind { name: "$last", strings: Strings::AsBytes, form: Form::Expression, make: |_| make() };

/// Makes the accumulator.
pub(crate) fn make() -> Box<dyn Accumulator> {
    Box::<Last>::default()
}

#[derive(Default)]
struct Last(Option<Value>);

impl Accumulator for Last {
    fn add(&mut self, value: Evaluated<'_>) -> Result<()> {
        self.0 = Some(value.into_value().unwrap_or(Value::Null));
        Ok(())
    }

    fn value(&self) -> Value {
        self.0.clone().unwrap_or(Value::Null)
    }

    fn finish(self: Box<Self>) -> Value {
        self.0.unwrap_or(Value::Null)
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.0.as_ref().map_or(0, |value| value_bytes(value.as_ref()))
    }
}
