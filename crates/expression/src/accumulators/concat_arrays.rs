//! `$concatArrays`: the elements of all arrays, one after the other; missing values are passed over.

use super::{Accumulator, Form, Kind, Strings, array_input, check_gathered};
use crate::Evaluated;
use bunko_bson::{ArrayBuf, Value};
use bunko_errors::Result;

pub(super) const KIND: Kind = Kind {
    name: "$concatArrays",
    strings: Strings::AsBytes,
    form: Form::Expression,
    make: |_| Box::<Elements>::default(),
};

#[derive(Default)]
struct Elements(ArrayBuf);

impl Accumulator for Elements {
    fn add(&mut self, value: Evaluated<'_>) -> Result<()> {
        let Some(array) = array_input(KIND.name, &value)? else { return Ok(()) };
        for element in array.iter() {
            check_gathered(KIND.name, self.0.len_bytes(), element)?;
            self.0.push(element);
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
        size_of::<Self>() + self.0.len_bytes()
    }
}
