//! Shared code of `$min` and `$max`.

use super::{Effect, Modifier, Scene};
use bunko_bson::{StringOrder, Value, ValueRef};
use bunko_errors::Result;
use std::cmp::Ordering;

/// Sets `value` if it compares to the current value as `wanted`, or if there is no current value.
#[derive(Debug)]
pub(super) struct Compare {
    pub value: Value,
    pub wanted: Ordering,
    pub strings: StringOrder,
}

impl Modifier for Compare {
    fn modify<'a>(&'a self, current: Option<ValueRef<'a>>, _scene: &Scene<'a>) -> Result<Effect<'a>> {
        let value = self.value.as_ref();
        let replaces = current.is_none_or(|current| self.strings.compare(value, current) == self.wanted);
        Ok(if replaces { Effect::Set(value) } else { Effect::Keep })
    }
}
