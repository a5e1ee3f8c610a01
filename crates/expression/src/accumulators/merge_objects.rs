//! `$mergeObjects`: the fields of documents, a later one's value for a name winning.

use super::{Accumulator, Form, Kind};
use crate::Evaluated;
use crate::printed::printed;
use bunko_bson::{DocumentBuf, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

pub(super) const KIND: Kind = Kind { name: "$mergeObjects", form: Form::Expression, make: |_| make() };

/// A new one.
pub(crate) fn make() -> Box<dyn Accumulator> {
    Box::<Merged>::default()
}

#[derive(Default)]
struct Merged(DocumentBuf);

impl Accumulator for Merged {
    fn add(&mut self, value: Evaluated<'_>) -> Result<()> {
        let addition = match value.get() {
            None | Some(ValueRef::Null | ValueRef::Undefined) => return Ok(()),
            Some(ValueRef::Document(document)) => document,
            Some(_) => {
                let (found, kind) = (printed(&value), value.type_name());
                let message = format!("$mergeObjects requires object inputs, but input {found} is of type {kind}");
                return Err(Failure::new(ErrorCode(40400), message));
            }
        };
        let mut merged = DocumentBuf::new();
        for element in self.0.as_ref() {
            merged.append(element.name, addition.get(element.name).unwrap_or(element.value));
        }
        for element in addition.iter().filter(|element| self.0.as_ref().get(element.name).is_none()) {
            merged.append(element.name, element.value);
        }
        self.0 = merged;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Value {
        Value::Document(self.0)
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.0.as_ref().len_bytes()
    }
}
