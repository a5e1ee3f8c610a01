//! `$push`: all values in an array.

use super::{Accumulator, Form, Kind, Strings, check_gathered};
use crate::Evaluated;
use bunko_bson::{ArrayBuf, Value};
use bunko_errors::Result;

pub(super) const KIND: Kind =
    Kind { name: "$push", strings: Strings::AsBytes, form: Form::Expression, make: |_| make() };

pub(crate) fn make() -> Box<dyn Accumulator> {
    Box::<Push>::default()
}

#[derive(Default)]
struct Push(ArrayBuf);

impl Accumulator for Push {
    fn add(&mut self, value: Evaluated<'_>) -> Result<()> {
        if let Some(value) = value.get() {
            check_gathered(KIND.name, self.0.len_bytes(), value)?;
            self.0.push(value);
        }
        Ok(())
    }

    fn value(&self) -> Value {
        Value::Array(self.0.clone())
    }

    fn finish(self: Box<Self>) -> Value {
        Value::Array(self.0)
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.0.as_ref().as_document().len_bytes()
    }
}
