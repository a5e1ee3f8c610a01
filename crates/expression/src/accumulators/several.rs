//! At most `n` values: the first, last, least or greatest.

use super::{Accumulator, value_bytes};
use crate::Evaluated;
use bunko_bson::{ArrayBuf, Value, order};
use bunko_errors::Result;
use std::cmp::Ordering;
use std::collections::VecDeque;

/// Which values are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    First,
    Last,
    Least,
    Greatest,
}

/// Values in the order of the result.
pub(super) struct Several {
    count: usize,
    which: Which,
    kept: VecDeque<Value>,
    bytes: usize,
}

impl Several {
    pub(super) fn new(count: usize, which: Which) -> Self {
        Self { count, which, kept: VecDeque::new(), bytes: 0 }
    }

    /// Where a value belongs among those kept, by order; equal ones stay before it.
    fn position(&self, value: &Value) -> usize {
        let greatest = self.which == Which::Greatest;
        self.kept.partition_point(|kept| {
            let ordering = order::compare(kept.as_ref(), value.as_ref());
            (if greatest { ordering.reverse() } else { ordering }) != Ordering::Greater
        })
    }
}

impl Accumulator for Several {
    fn add(&mut self, value: Evaluated<'_>) -> Result<()> {
        let sorted = matches!(self.which, Which::Least | Which::Greatest);
        if (sorted && value.is_nullish()) || (self.which == Which::First && self.kept.len() == self.count) {
            return Ok(());
        }
        let value = value.into_value().unwrap_or(Value::Null);
        self.bytes += value_bytes(value.as_ref());
        let position = if sorted { self.position(&value) } else { self.kept.len() };
        self.kept.insert(position, value);
        if self.kept.len() > self.count {
            let dropped = if self.which == Which::Last { self.kept.pop_front() } else { self.kept.pop_back() };
            self.bytes -= dropped.map_or(0, |value| value_bytes(value.as_ref()));
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Value {
        Value::Array(self.kept.iter().collect::<ArrayBuf>())
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.bytes
    }
}
