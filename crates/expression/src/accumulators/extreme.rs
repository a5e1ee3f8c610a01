//! The least or the greatest value seen.

use super::{Accumulator, value_bytes};
use crate::Evaluated;
use bunko_bson::{StringOrder, Value};
use bunko_errors::Result;
use std::cmp::Ordering;

/// Keeps the least value (`wanted` is `Less`) or the greatest (`Greater`); null and missing are ignored.
pub(super) struct Extreme {
    wanted: Ordering,
    kept: Option<Value>,
    strings: StringOrder,
}

impl Extreme {
    pub(super) fn new(wanted: Ordering) -> Self {
        Self { wanted, kept: None, strings: StringOrder::default() }
    }
}

impl Accumulator for Extreme {
    fn add(&mut self, value: Evaluated<'_>) -> Result<()> {
        if value.is_nullish() {
            return Ok(());
        }
        let better = match &self.kept {
            None => true,
            Some(kept) => self.strings.compare(value.or_null(), kept.as_ref()) == self.wanted,
        };
        if better {
            self.kept = value.into_value();
        }
        Ok(())
    }

    fn value(&self) -> Value {
        self.kept.clone().unwrap_or(Value::Null)
    }

    fn collate(&mut self, strings: &StringOrder) {
        self.strings = strings.clone();
    }

    fn finish(self: Box<Self>) -> Value {
        self.kept.unwrap_or(Value::Null)
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.kept.as_ref().map_or(0, |value| value_bytes(value.as_ref()))
    }
}
