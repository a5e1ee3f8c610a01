//! At most `n` values: the first, last, least or greatest.

use super::{Accumulator, value_bytes};
use crate::Evaluated;
use bunko_bson::key_string::Direction;
use bunko_bson::{ArrayBuf, StringOrder, Value};
use bunko_errors::Result;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// Which values are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    First,
    Last,
    Least,
    Greatest,
}

/// The kept values, and their order in the result.
pub(crate) struct KeptValues {
    count: usize,
    which: Which,
    /// The first or last, in their order.
    in_turn: VecDeque<Value>,
    /// The least or greatest; the value that is dropped next is on top.
    ranked: BinaryHeap<Ranked>,
    bytes: usize,
    next_turn: u64,
    strings: StringOrder,
}

/// The rank of a value: its key string, inverted if the greatest come first; equal values in the order of arrival.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    key: Vec<u8>,
    turn: u64,
}

struct Ranked {
    rank: Rank,
    value: Value,
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank.cmp(&other.rank)
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.rank == other.rank
    }
}

impl Eq for Ranked {}

impl Ranked {
    fn bytes(&self) -> usize {
        value_bytes(self.value.as_ref()) + size_of::<Rank>() + self.rank.key.len()
    }
}

impl KeptValues {
    pub(crate) fn new(count: usize, which: Which) -> Self {
        let (in_turn, ranked, strings) = (VecDeque::new(), BinaryHeap::new(), StringOrder::default());
        Self { count, which, in_turn, ranked, bytes: 0, next_turn: 0, strings }
    }

    fn add_ranked(&mut self, value: Evaluated<'_>) {
        let direction = if self.which == Which::Greatest { Direction::Descending } else { Direction::Ascending };
        let mut key = Vec::new();
        self.strings.append_key(&mut key, value.or_null(), direction);
        let rank = Rank { key, turn: self.next_turn };
        self.next_turn += 1;
        if self.ranked.len() == self.count {
            if self.ranked.peek().is_some_and(|last| last.rank < rank) {
                return;
            }
            self.bytes -= self.ranked.pop().map_or(0, |dropped| dropped.bytes());
        }
        let ranked = Ranked { rank, value: value.into_value().unwrap_or(Value::Null) };
        self.bytes += ranked.bytes();
        self.ranked.push(ranked);
    }

    fn add_in_turn(&mut self, value: Evaluated<'_>) {
        if self.in_turn.len() == self.count {
            if self.which == Which::First {
                return;
            }
            self.bytes -= self.in_turn.pop_front().map_or(0, |value| value_bytes(value.as_ref()));
        }
        let value = value.into_value().unwrap_or(Value::Null);
        self.bytes += value_bytes(value.as_ref());
        self.in_turn.push_back(value);
    }
}

impl Accumulator for KeptValues {
    fn add(&mut self, value: Evaluated<'_>) -> Result<()> {
        match self.which {
            Which::First | Which::Last => self.add_in_turn(value),
            Which::Least | Which::Greatest if value.is_nullish() => {}
            Which::Least | Which::Greatest => self.add_ranked(value),
        }
        Ok(())
    }

    fn collate(&mut self, strings: &StringOrder) {
        self.strings = strings.clone();
    }

    fn value(&self) -> Value {
        let mut ranked: Vec<_> = self.ranked.iter().collect();
        ranked.sort_unstable();
        let values = self.in_turn.iter().chain(ranked.into_iter().map(|ranked| &ranked.value));
        Value::Array(values.collect::<ArrayBuf>())
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.bytes
    }
}
