//! The order of results: by score, unless the search names fields.

use crate::Reader;
use crate::token::SequenceToken;
use crate::unit::Unit;
use bunko_bson::{Value, ValueRef, number, order};
use bunko_errors::Result;
use std::cmp::Ordering;

/// The sort keys, the most important first.
#[derive(Debug, Default)]
pub(crate) struct Sort(Vec<Key>);

#[derive(Debug)]
enum Key {
    Score(Direction),
    Field { path: String, direction: Direction, missing: Missing },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Ascending,
    Descending,
}

/// The place of documents that lack the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    Lowest,
    Highest,
}

impl Sort {
    pub fn parse(reader: &Reader<'_>) -> Result<Self> {
        let mut keys = Vec::new();
        for field in reader.document() {
            keys.push(key(reader, field.name)?);
        }
        if keys.is_empty() { Err(reader.failure("must have at least one field")) } else { Ok(Self(keys)) }
    }

    /// Reads the values by which a document is sorted.
    pub fn values(&self, unit: &Unit<'_>) -> Vec<Value> {
        let value = |key: &Key| match key {
            Key::Score(_) => Value::Null,
            Key::Field { path, direction, missing } => {
                let values =
                    unit.values(path).map(|field| field.value).filter(|value| !matches!(value, ValueRef::Null));
                let compare = |one: &ValueRef<'_>, other: &ValueRef<'_>| order::compare(*one, *other);
                let chosen = match direction {
                    Direction::Ascending => values.min_by(compare),
                    Direction::Descending => values.max_by(compare),
                };
                match (chosen, missing) {
                    (Some(value), _) => value.to_value(),
                    (None, Missing::Lowest) => Value::MinKey,
                    (None, Missing::Highest) => Value::MaxKey,
                }
            }
        };
        self.0.iter().map(value).collect()
    }

    /// Compares two documents by the sort keys.
    pub fn compare(&self, one: &SequenceToken, other: &SequenceToken) -> Ordering {
        for (position, key) in self.0.iter().enumerate() {
            let (direction, order) = match key {
                Key::Score(direction) => (direction, one.score.total_cmp(&other.score)),
                Key::Field { direction, .. } => match (one.keys.get(position), other.keys.get(position)) {
                    (Some(one), Some(other)) => (direction, order::compare(one.as_ref(), other.as_ref())),
                    _ => continue,
                },
            };
            let order = if *direction == Direction::Descending { order.reverse() } else { order };
            if order.is_ne() {
                return order;
            }
        }
        let by_score = if self.0.is_empty() { other.score.total_cmp(&one.score) } else { Ordering::Equal };
        by_score.then(one.record.cmp(&other.record)).then(one.part.cmp(&other.part))
    }
}

fn direction(value: Option<ValueRef<'_>>) -> Option<Direction> {
    let value = value.filter(|value| value.is_number())?;
    match number::as_f64(value)? {
        1.0 => Some(Direction::Ascending),
        -1.0 => Some(Direction::Descending),
        _ => None,
    }
}

fn key(reader: &Reader<'_>, name: &str) -> Result<Key> {
    let wrong = |at: &Reader<'_>, name: &str| at.wrong(name, "must be 1 or -1");
    if !matches!(reader.value(name), Some(ValueRef::Document(_))) {
        let direction = direction(reader.value(name)).ok_or_else(|| wrong(reader, name))?;
        return Ok(Key::Field { path: name.to_owned(), direction, missing: Missing::Lowest });
    }
    let inner = reader.required(reader.inner(name)?, name)?;
    let order = match inner.value("order") {
        None => None,
        value => Some(direction(value).ok_or_else(|| wrong(&inner, "order"))?),
    };
    if inner.one_of("$meta", &[("searchScore", ())])?.is_some() {
        inner.done()?;
        return Ok(Key::Score(order.unwrap_or(Direction::Descending)));
    }
    let missing = inner.one_of("noData", &[("lowest", Missing::Lowest), ("highest", Missing::Highest)])?;
    inner.done()?;
    let direction = inner.required(order, "order")?;
    Ok(Key::Field { path: name.to_owned(), direction, missing: missing.unwrap_or(Missing::Lowest) })
}
