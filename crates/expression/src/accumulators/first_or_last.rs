//! `$first` and `$last`: the value of the first or the last document.

use super::{Accumulator, Form, Kind, Strings, value_bytes};
use crate::Evaluated;
use bunko_bson::Value;
use bunko_errors::Result;

pub(super) const FIRST: Kind = Kind {
    name: "$first",
    strings: Strings::AsBytes,
    form: Form::Expression,
    make: |_| Box::new(OneValue { kept: Kept::First, value: None }),
};
pub(super) const LAST: Kind = Kind {
    name: "$last",
    strings: Strings::AsBytes,
    form: Form::Expression,
    make: |_| Box::new(OneValue { kept: Kept::Last, value: None }),
};

#[derive(PartialEq, Eq)]
enum Kept {
    First,
    Last,
}

struct OneValue {
    kept: Kept,
    value: Option<Value>,
}

impl Accumulator for OneValue {
    fn add(&mut self, value: Evaluated<'_>) -> Result<()> {
        if self.kept == Kept::Last || self.value.is_none() {
            self.value = Some(value.into_value().unwrap_or(Value::Null));
        }
        Ok(())
    }

    fn value(&self) -> Value {
        self.value.clone().unwrap_or(Value::Null)
    }

    fn finish(self: Box<Self>) -> Value {
        self.value.unwrap_or(Value::Null)
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.value.as_ref().map_or(0, |value| value_bytes(value.as_ref()))
    }
}
