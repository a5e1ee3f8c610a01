//! `$top`, `$bottom`, `$topN`, `$bottomN`: values of the first or last documents in an order of their own.

use super::{Accumulator, Form, Kind, Settings, Strings, value_bytes};
use crate::Evaluated;
use bunko_bson::{ArrayBuf, Value};
use bunko_errors::Result;
use std::collections::BTreeMap;

pub(super) const TOP: Kind = Kind {
    name: "$top",
    strings: Strings::Collated,
    form: Form::Ordered,
    make: |_| Ranking::make(End::First, Answer::Value, 1),
};
pub(super) const BOTTOM: Kind = Kind {
    name: "$bottom",
    strings: Strings::Collated,
    form: Form::Ordered,
    make: |_| Ranking::make(End::Last, Answer::Value, 1),
};
pub(super) const TOP_N: Kind =
    Kind { name: "$topN", strings: Strings::Collated, form: Form::OrderedAndCount, make: |s| several(End::First, s) };
pub(super) const BOTTOM_N: Kind =
    Kind { name: "$bottomN", strings: Strings::Collated, form: Form::OrderedAndCount, make: |s| several(End::Last, s) };

fn several(end: End, settings: &Settings) -> Box<dyn Accumulator> {
    Ranking::make(end, Answer::Array, settings.count)
}

/// The end of the order that is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    First,
    Last,
}

/// The form of the result.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Value,
    Array,
}

/// The kept values by sort key; equal keys in order of arrival.
struct Ranking {
    end: End,
    answer: Answer,
    count: usize,
    kept: BTreeMap<(Vec<u8>, u64), Value>,
    next_turn: u64,
    bytes: usize,
}

impl Ranking {
    fn make(end: End, answer: Answer, count: usize) -> Box<dyn Accumulator> {
        Box::new(Self { end, answer, count, kept: BTreeMap::new(), next_turn: 0, bytes: 0 })
    }
}

fn entry_bytes(key: &[u8], value: &Value) -> usize {
    key.len() + size_of::<(Vec<u8>, u64)>() + value_bytes(value.as_ref())
}

impl Accumulator for Ranking {
    fn add(&mut self, value: Evaluated<'_>) -> Result<()> {
        self.add_sorted(Vec::new(), value)
    }

    fn add_sorted(&mut self, key: Vec<u8>, value: Evaluated<'_>) -> Result<()> {
        let turn = self.next_turn;
        self.next_turn += 1;
        if self.kept.len() == self.count {
            let is_worse = match self.end {
                End::First => self.kept.last_key_value().is_some_and(|((last, _), _)| *last <= key),
                End::Last => self.kept.first_key_value().is_some_and(|((first, _), _)| *first > key),
            };
            if is_worse {
                return Ok(());
            }
            let dropped = if self.end == End::First { self.kept.pop_last() } else { self.kept.pop_first() };
            self.bytes -= dropped.map_or(0, |((key, _), value)| entry_bytes(&key, &value));
        }
        let value = value.into_value().unwrap_or(Value::Null);
        self.bytes += entry_bytes(&key, &value);
        self.kept.insert((key, turn), value);
        Ok(())
    }

    fn value(&self) -> Value {
        match self.answer {
            Answer::Value => self.kept.values().next().cloned().unwrap_or(Value::Null),
            Answer::Array => Value::Array(self.kept.values().collect::<ArrayBuf>()),
        }
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.bytes
    }
}
