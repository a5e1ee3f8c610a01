//! `$setUnion`: the distinct elements of all arrays, in the order of their arrival; missing values are passed over.

use super::add_to_set::Set;
use super::{Accumulator, Form, Kind, Strings, array_input};
use crate::Evaluated;
use bunko_bson::{StringOrder, Value};
use bunko_errors::Result;

pub(super) const KIND: Kind =
    Kind { name: "$setUnion", strings: Strings::Collated, form: Form::Expression, make: |_| Box::<Union>::default() };

#[derive(Default)]
struct Union(Box<Set>);

impl Accumulator for Union {
    fn add(&mut self, value: Evaluated<'_>) -> Result<()> {
        let Some(array) = array_input(KIND.name, &value)? else { return Ok(()) };
        array.iter().try_for_each(|element| self.0.add(Evaluated::Ref(element)))
    }

    fn collate(&mut self, strings: &StringOrder) {
        self.0.collate(strings);
    }

    fn value(&self) -> Value {
        self.0.value()
    }

    fn finish(self: Box<Self>) -> Value {
        self.0.finish()
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
}
