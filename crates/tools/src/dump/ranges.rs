//! Parts of a collection by `_id`. Each is read by a cursor of its own, which is replaced if it is lost.
//!
//! Servers compare an `_id` with a value of its own type only (`{$gt: 5}` finds no string), so a range over all types
//! is a list of conditions, one for each type in it. `min` and `max` would compare across types, but not every server
//! supports them.

use super::extended_json_text as text;
use bunko_bson::order::{compare, rank};
use bunko_bson::{ArrayBuf, DocumentBuf, ObjectId, Timestamp, Type, Value, ValueRef};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// Where a range begins.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Start {
    /// At the smallest `_id` of all.
    First,
    /// At that `_id`.
    At(#[serde(with = "text::value")] Value),
    /// At the first `_id` after this one.
    After(#[serde(with = "text::value")] Value),
}

/// Where a range ends.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum End {
    /// Before that `_id`.
    Before(#[serde(with = "text::value")] Value),
    /// After the largest `_id` whose type compares with this one.
    TypeOf(#[serde(with = "text::value")] Value),
    /// After the largest `_id` of all.
    Last,
}

/// The `_id`s from a start to an end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Range {
    pub start: Start,
    pub end: End,
}

/// How to ask for the `_id`s of one type, or of several types that compare with each other.
enum Class {
    /// All but not-a-number are at least negative infinity. Not-a-number compares with nothing, so it has a condition
    /// of its own.
    Numbers,
    /// All values of the type are at least this one.
    AtLeast(fn() -> Value),
    /// The type has only this value.
    Only(fn() -> Value),
    /// By the type's name, for which few planners use an index: types that are rare in an `_id`.
    Named,
}

/// In MongoDB's order. Arrays cannot be an `_id`.
/// Source: MongoDB manual, "Comparison/Sort Order".
const CLASSES: &[(Type, Class)] = &[
    (Type::MinKey, Class::Only(|| Value::MinKey)),
    (Type::Undefined, Class::Named),
    (Type::Null, Class::Only(|| Value::Null)),
    (Type::Double, Class::Numbers),
    (Type::String, Class::AtLeast(|| Value::String(String::new()))),
    (Type::Document, Class::AtLeast(|| Value::Document(DocumentBuf::new()))),
    (Type::Binary, Class::AtLeast(|| Value::Binary { subtype: 0, bytes: Vec::new() })),
    (Type::ObjectId, Class::AtLeast(|| Value::ObjectId(ObjectId([0; 12])))),
    (Type::Boolean, Class::AtLeast(|| Value::Boolean(false))),
    (Type::DateTime, Class::AtLeast(|| Value::DateTime(i64::MIN))),
    (Type::Timestamp, Class::AtLeast(|| Value::Timestamp(Timestamp { seconds: 0, increment: 0 }))),
    (Type::Regex, Class::Named),
    (Type::DbPointer, Class::Named),
    (Type::JavaScript, Class::Named),
    (Type::JavaScriptWithScope, Class::Named),
    (Type::MaxKey, Class::Only(|| Value::MaxKey)),
];

impl Range {
    /// The range of all `_id`s.
    pub fn whole() -> Self {
        Self { start: Start::First, end: End::Last }
    }

    /// All `_id`s of a collection in which these are the smallest and the largest. Types that it does not hold are left
    /// out of the filter: some have no condition that an index serves.
    pub fn from_to(smallest: Value, largest: Value) -> Self {
        Self { start: Start::At(smallest), end: End::TypeOf(largest) }
    }

    /// Cuts the range at `boundaries`, which ascend and lie in it.
    pub fn cut(self, boundaries: &[Value]) -> Vec<Self> {
        let starts = std::iter::once(self.start).chain(boundaries.iter().cloned().map(Start::At));
        let ends = boundaries.iter().cloned().map(End::Before).chain([self.end]);
        starts.zip(ends).map(|(start, end)| Self { start, end }).collect()
    }

    /// The rest of the range after `last`.
    pub fn after(&self, last: Value) -> Self {
        Self { start: Start::After(last), end: self.end.clone() }
    }

    /// The filter that finds exactly the documents of the range; `None` if the range can have none.
    pub fn filter(&self) -> Option<DocumentBuf> {
        let first = match &self.start {
            Start::First if matches!(self.end, End::Last) => return Some(DocumentBuf::new()),
            Start::First => 0,
            Start::At(value) | Start::After(value) => rank(value.as_ref().kind()),
        };
        let (last, before) = match &self.end {
            End::Before(value) => (rank(value.as_ref().kind()), Some(value)),
            End::TypeOf(value) => (rank(value.as_ref().kind()), None),
            End::Last => (u8::MAX, None),
        };
        let mut conditions = Vec::new();
        for (kind, class) in CLASSES {
            let this = rank(*kind);
            if (first..=last).contains(&this) {
                let start = if this == first { &self.start } else { &Start::First };
                let before = before.filter(|_| this == last);
                class_conditions(*kind, class, start, before, &mut conditions);
            }
        }
        match conditions.len() {
            0 => None,
            1 => conditions.pop(),
            _ => Some(DocumentBuf::new().with("$or", &conditions.iter().collect::<ArrayBuf>())),
        }
    }
}

/// Appends the conditions that find the documents of one class between a start and an end; those of its bounds that
/// exist have the class's type.
fn class_conditions(kind: Type, class: &Class, start: &Start, end: Option<&Value>, conditions: &mut Vec<DocumentBuf>) {
    let is = |value: &Value| DocumentBuf::new().with("_id", value);
    let mut bounds = DocumentBuf::new();
    match class {
        Class::Only(value) => {
            if !matches!(start, Start::After(_)) && end.is_none() {
                // `{$eq: ...}`, because a bare null or MinKey could be read as another condition.
                conditions.push(DocumentBuf::new().with("_id", &DocumentBuf::new().with("$eq", &value())));
            }
            return;
        }
        Class::Numbers => {
            let has_nan = match start {
                Start::First => true,
                Start::At(value) => is_nan(value),
                Start::After(_) => false,
            };
            if has_nan && !end.is_some_and(is_nan) {
                conditions.push(is(&Value::Double(f64::NAN)));
            }
            match start {
                Start::At(value) if !is_nan(value) => bounds.append("$gte", value),
                Start::After(value) if !is_nan(value) => bounds.append("$gt", value),
                _ => bounds.append("$gte", f64::NEG_INFINITY),
            };
        }
        Class::AtLeast(least) => append_start(&mut bounds, start, Some(least())),
        Class::Named => {
            append_start(&mut bounds, start, None);
            if bounds.as_ref().is_empty() {
                bounds.append("$type", kind.alias());
            }
        }
    }
    match end {
        // Nothing comes before not-a-number among the numbers.
        Some(end) if is_nan(end) => return,
        Some(end) => bounds.append("$lt", end),
        None => &mut bounds,
    };
    conditions.push(DocumentBuf::new().with("_id", &bounds));
}

fn append_start(bounds: &mut DocumentBuf, start: &Start, least: Option<Value>) {
    match (start, least) {
        (Start::At(value), _) => bounds.append("$gte", value),
        (Start::After(value), _) => bounds.append("$gt", value),
        (Start::First, Some(least)) => bounds.append("$gte", &least),
        (Start::First, None) => bounds,
    };
}

fn is_nan(value: &Value) -> bool {
    let not_a_number = Value::Double(f64::NAN);
    value.as_ref().is_number() && compare(value.as_ref(), not_a_number.as_ref()) == Ordering::Equal
}

/// Values that cut `smallest..=largest` into `parts` of equal width, in rising order. Parts hold equally many documents
/// only if `_id`s are spread evenly, as `_id`s from drivers and counters are. Empty for types whose values have no
/// middle.
pub(super) fn interpolate(smallest: ValueRef<'_>, largest: ValueRef<'_>, parts: usize) -> Vec<Value> {
    let (low, high, make) = match (smallest, largest) {
        (ValueRef::ObjectId(low), ValueRef::ObjectId(high)) => {
            let make: fn(u128) -> Value = |number| Value::ObjectId(object_id(number));
            (object_id_number(low), object_id_number(high), make)
        }
        (ValueRef::Binary { subtype: low_type, bytes: low }, ValueRef::Binary { subtype: high_type, bytes: high }) => {
            let (Ok(low), Ok(high)) = (low.try_into(), high.try_into()) else { return Vec::new() };
            if low_type != UUID || high_type != UUID {
                return Vec::new();
            }
            let make: fn(u128) -> Value =
                |number| Value::Binary { subtype: UUID, bytes: number.to_be_bytes().to_vec() };
            (u128::from_be_bytes(low), u128::from_be_bytes(high), make)
        }
        (ValueRef::DateTime(low), ValueRef::DateTime(high)) => {
            let make: fn(u128) -> Value = |number| Value::DateTime(from_ordered(number));
            (to_ordered(low), to_ordered(high), make)
        }
        _ => {
            let (Some(low), Some(high)) = (whole_number(smallest), whole_number(largest)) else { return Vec::new() };
            let make: fn(u128) -> Value = |number| Value::Int64(from_ordered(number));
            (to_ordered(low), to_ordered(high), make)
        }
    };
    let step = high.saturating_sub(low) / parts.max(1) as u128;
    if step == 0 {
        return Vec::new();
    }
    (1..parts as u128).map(|part| make(low + step * part)).collect()
}

const UUID: u8 = bunko_bson::BinarySubtype::UUID;

fn object_id_number(id: ObjectId) -> u128 {
    let mut bytes = [0; 16];
    bytes[4..].copy_from_slice(&id.0);
    u128::from_be_bytes(bytes)
}

fn object_id(number: u128) -> ObjectId {
    let mut id = [0; 12];
    id.copy_from_slice(&number.to_be_bytes()[4..]);
    ObjectId(id)
}

/// Maps signed numbers to unsigned ones in the same order.
fn to_ordered(number: i64) -> u128 {
    u128::from(number as u64 ^ (1 << 63))
}

fn from_ordered(number: u128) -> i64 {
    (number as u64 ^ (1 << 63)) as i64
}

fn whole_number(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Int32(number) => Some(number.into()),
        ValueRef::Int64(number) => Some(number),
        // The lost fraction does not matter: any value can be a boundary.
        ValueRef::Double(number) if number.abs() < 9e18 => Some(number as i64),
        _ => None,
    }
}

/// Cuts a sample at equal distances, so that `parts` ranges hold about as many documents each. Empty if the sample has
/// fewer distinct values than parts.
pub(super) fn quantiles(mut sample: Vec<Value>, parts: usize) -> Vec<Value> {
    sample.sort_by(|left, right| compare(left.as_ref(), right.as_ref()));
    sample.dedup_by(|left, right| compare(left.as_ref(), right.as_ref()) == Ordering::Equal);
    if sample.len() < parts {
        return Vec::new();
    }
    (1..parts).map(|part| sample[part * sample.len() / parts].clone()).collect()
}

#[cfg(test)]
mod tests;
