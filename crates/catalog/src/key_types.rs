//! The types of values in an index's keys. Keys alone do not distinguish types that compare as equal.
//!
//! A key does not tell `1` from `1.0`, nor null from a missing field. So each index remembers which of these types its
//! fields have ever had, in the collection's record and beside its arrays. A type is saved before the first key of it
//! is written, and a plan reads the types after it has taken its snapshot. Rejected: the types beside each entry, for
//! which every key of every index would pay.

use bunko_bson::{Value, ValueRef};

/// Number of leading fields of an index whose types are recorded.
const FIELDS_MAX: usize = 8;
const BITS_PER_FIELD: usize = 8;

const INT32: u8 = 1;
const INT64: u8 = 2;
/// A double that is neither NaN nor negative zero.
const DOUBLE: u8 = 4;
const NULL: u8 = 8;
const MISSING: u8 = 16;
/// A value that a key cannot give back: a decimal has its digits, a document may hold numbers.
const INEXACT: u8 = 32;
/// A flag of the index, in the last field's bits: some key was shortened.
const LONG_KEY: u64 = 1 << 63;
const NUMBERS: u8 = INT32 | INT64 | DOUBLE;

/// For each of an index's first fields, the types that its keys may not distinguish. Types are only added, each before
/// the first key of the type is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyTypes(u64);

/// A field's value as read from a key.
#[derive(Clone, Debug)]
pub enum ReadBack {
    /// Documents with this key have exactly this value.
    Value(Value),
    /// Documents with this key have no such field.
    Missing,
    /// The key does not determine the value.
    Unknown,
}

impl KeyTypes {
    /// For keys that were made before types were recorded.
    pub(crate) const UNKNOWN: Self = Self(!LONG_KEY);

    /// For `_id`s that are ints, or of a type that keys distinguish.
    pub(crate) const COMMON_IDS: Self = Self(INT32 as u64);

    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Whether some key of the index may be [shortened](crate::shorten_key).
    pub fn has_long_keys(self) -> bool {
        self.0 & LONG_KEY != 0
    }

    pub(crate) fn note_long_key(&mut self) {
        self.0 |= LONG_KEY;
    }

    /// The types without the flag for shortened keys.
    pub(crate) fn without_long_keys(self) -> Self {
        Self(self.0 & !LONG_KEY)
    }

    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// Records the type of a document's value in a field; `None` if the document lacks the field.
    #[inline]
    pub(crate) fn note(&mut self, field: usize, value: Option<ValueRef<'_>>) {
        if field < FIELDS_MAX {
            self.0 |= u64::from(flag(value)) << (field * BITS_PER_FIELD);
        }
    }

    pub(crate) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn covers(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    fn of_field(self, field: usize) -> u8 {
        if field < FIELDS_MAX { (self.0 >> (field * BITS_PER_FIELD)) as u8 } else { u8::MAX }
    }

    /// Whether keys give back all values of a field at this path.
    pub fn are_exact_at(self, field: usize, path: &str) -> bool {
        let types = self.of_field(field);
        let numbers = (types & NUMBERS).count_ones();
        // A field that is missing in a nested document may leave a part of that document to be shown.
        let is_null_known = types & MISSING == 0 || types & NULL == 0 && !path.contains('.');
        types & INEXACT == 0 && numbers <= 1 && is_null_known
    }

    /// Whether some keys may give back the field's values; [`Self::read_back`] decides for each key.
    pub fn may_be_exact_at(self, field: usize) -> bool {
        self.of_field(field) & INEXACT == 0
    }

    /// Whether no document has null in the field, so that the key of null stands for a missing field alone. Only for
    /// indexes that record types.
    pub fn lack_null_at(self, field: usize) -> bool {
        self.of_field(field) & NULL == 0
    }

    /// The documents' value in a field, given the value `told` in their key.
    pub fn read_back(self, field: usize, told: Value) -> ReadBack {
        let types = self.of_field(field);
        if types & INEXACT != 0 {
            return ReadBack::Unknown;
        }
        let number = |told: Value| match (types & NUMBERS, told) {
            (INT32, Value::Int32(number)) => ReadBack::Value(Value::Int32(number)),
            (INT64, Value::Int32(number)) => ReadBack::Value(Value::Int64(i64::from(number))),
            (INT64, Value::Int64(number)) => ReadBack::Value(Value::Int64(number)),
            (DOUBLE, Value::Int32(number)) => ReadBack::Value(Value::Double(f64::from(number))),
            // The key was made from a double, so the number converts back exactly.
            (DOUBLE, Value::Int64(number)) => ReadBack::Value(Value::Double(number as f64)),
            (DOUBLE, Value::Double(number)) => ReadBack::Value(Value::Double(number)),
            _ => ReadBack::Unknown,
        };
        match told {
            Value::Null if types & (NULL | MISSING) == NULL => ReadBack::Value(Value::Null),
            Value::Null if types & (NULL | MISSING) == MISSING => ReadBack::Missing,
            Value::String(_)
            | Value::ObjectId(_)
            | Value::Boolean(_)
            | Value::DateTime(_)
            | Value::Timestamp(_)
            | Value::Binary { .. } => ReadBack::Value(told),
            told => number(told),
        }
    }
}

fn flag(value: Option<ValueRef<'_>>) -> u8 {
    match value {
        None => MISSING,
        Some(ValueRef::Null) => NULL,
        Some(ValueRef::Int32(_)) => INT32,
        Some(ValueRef::Int64(_)) => INT64,
        Some(ValueRef::Double(number)) if !number.is_nan() && (number != 0.0 || number.is_sign_positive()) => DOUBLE,
        Some(
            ValueRef::String(_)
            | ValueRef::ObjectId(_)
            | ValueRef::Boolean(_)
            | ValueRef::DateTime(_)
            | ValueRef::Timestamp(_)
            | ValueRef::Binary { .. },
        ) => 0,
        Some(_) => INEXACT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::key_string::{Direction, append, decode};
    use bunko_testkit::shell;

    fn types_of(values: &[&str]) -> KeyTypes {
        let mut types = KeyTypes::default();
        for value in values {
            let document = shell::parse_document(&format!("{{v: {value}}}")).expect("a document");
            types.note(1, document.as_ref().get("v"));
        }
        types
    }

    #[test]
    fn values_come_back_as_they_were_or_not_at_all() {
        let cases: &[(&[&str], bool)] = &[
            (&["1", "-7", "0", "'x'", "ISODate('2020-01-01T00:00:00Z')", "true", "null"], true),
            (&["NumberLong(1)", "NumberLong('9007199254740993')", "ObjectId('0123456789abcdef01234567')"], true),
            (&["1.0", "2.5", "0.0", "1e300", "Infinity", "-Infinity", "1152921504606846976.0"], true),
            (&["1", "NumberLong(1)"], false),
            (&["1", "1.0"], false),
            (&["NumberDecimal('1.00')"], false),
            (&["-0.0"], false),
            (&["NaN"], false),
            (&["{a: 1}"], false),
            (&["undefined"], false),
        ];
        for (values, is_exact) in cases {
            let types = types_of(values);
            assert_eq!(types.are_exact_at(1, "v"), *is_exact, "{values:?}");
            for value in values.iter().filter(|_| *is_exact) {
                let document = shell::parse_document(&format!("{{v: {value}}}")).expect("a document");
                let stored = document.as_ref().get("v").expect("a value");
                let mut key = Vec::new();
                append(&mut key, stored, Direction::Descending);
                let told = decode(&key, &[Direction::Descending]).expect("a key").remove(0);
                let ReadBack::Value(read) = types.read_back(1, told) else { panic!("{value} is unknown") };
                assert_eq!(read.as_ref().kind(), stored.kind(), "{value}");
                assert_eq!(shell::print(read.as_ref()), shell::print(stored));
            }
        }
    }

    #[test]
    fn null_is_a_missing_field_where_no_document_has_a_null() {
        let mut types = KeyTypes::default();
        types.note(0, None);
        assert!(types.are_exact_at(0, "v") && !types.are_exact_at(0, "v.w"));
        assert!(matches!(types.read_back(0, Value::Null), ReadBack::Missing));
        types.note(0, Some(ValueRef::Null));
        assert!(!types.are_exact_at(0, "v"));
        assert!(matches!(types.read_back(0, Value::Null), ReadBack::Unknown) && types.may_be_exact_at(0));
        types.note(0, Some(ValueRef::Undefined));
        assert!(!types.may_be_exact_at(0));
    }

    #[test]
    fn types_are_told_apart_by_field_and_only_of_the_first() {
        let mut types = KeyTypes::default();
        types.note(0, Some(ValueRef::Int32(1)));
        types.note(7, Some(ValueRef::Double(1.0)));
        types.note(8, Some(ValueRef::Int32(1)));
        assert!(types.are_exact_at(0, "a") && types.are_exact_at(7, "b") && !types.are_exact_at(8, "c"));
        assert!(KeyTypes::UNKNOWN.covers(types) && !KeyTypes::UNKNOWN.are_exact_at(0, "a"));
        assert!(types.with(KeyTypes::UNKNOWN) == KeyTypes::UNKNOWN && !KeyTypes::default().covers(types));
    }
}
