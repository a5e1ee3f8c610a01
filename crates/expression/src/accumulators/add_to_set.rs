//! `$addToSet`: the distinct values in an array, in the order of their arrival.

use super::{Accumulator, Form, Kind, Strings, check_gathered};
use crate::Evaluated;
use bunko_bson::key_string::Direction;
use bunko_bson::{ArrayBuf, StringOrder, Value};
use bunko_errors::Result;
use foldhash::HashSet;

pub(super) const KIND: Kind =
    Kind { name: "$addToSet", strings: Strings::Collated, form: Form::Expression, make: |_| make() };

pub(crate) fn make() -> Box<dyn Accumulator> {
    Box::<Set>::default()
}

#[derive(Default)]
pub(super) struct Set {
    seen: HashSet<Box<[u8]>>,
    seen_bytes: usize,
    values: ArrayBuf,
    /// Reused between values.
    key: Vec<u8>,
    strings: StringOrder,
}

impl Accumulator for Set {
    fn add(&mut self, value: Evaluated<'_>) -> Result<()> {
        let Some(value) = value.get() else { return Ok(()) };
        // Equal values of different number types have equal key strings.
        self.key.clear();
        self.strings.append_key(&mut self.key, value, Direction::Ascending);
        if !self.seen.contains(self.key.as_slice()) {
            check_gathered(KIND.name, self.memory_bytes(), value)?;
            self.seen.insert(self.key.as_slice().into());
            self.seen_bytes += self.key.len() + size_of::<Box<[u8]>>();
            self.values.push(value);
        }
        Ok(())
    }

    fn value(&self) -> Value {
        Value::Array(self.values.clone())
    }

    fn collate(&mut self, strings: &StringOrder) {
        self.strings = strings.clone();
    }

    fn finish(self: Box<Self>) -> Value {
        Value::Array(self.values)
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.seen_bytes + self.values.as_ref().as_document().len_bytes()
    }
}
