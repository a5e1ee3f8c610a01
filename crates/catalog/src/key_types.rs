//! The types of values in an index's keys. Keys alone do not distinguish types that compare as equal.
//!
//! A key does not tell `1` from `1.0`, nor null from a missing field. It does tell `1.5`, which only a double can be unless
//! there are decimals. So each index remembers which of the types that share keys its fields have ever had, in the
//! collection's record and beside its arrays. A type is saved before the first key of it is written, and types are never
//! removed. A plan compares the types that it was made for with the present ones once it has its snapshot, so it knows the
//! types of all keys in the snapshot. Rejected: the types beside each entry, for which every key of every index would pay.

use bunko_bson::{Type, Value, ValueRef, number, order};

/// Number of leading fields of an index whose types are recorded.
const FIELDS_MAX: usize = 8;
const BITS_PER_FIELD: usize = 8;

const INT32: u8 = 1;
/// An int64 that an int32 could hold. Earlier servers set this for every int64.
const INT64: u8 = 2;
/// A whole double that an int32 could hold. Earlier servers set this for every double but NaN and negative zero.
const DOUBLE: u8 = 4;
const NULL: u8 = 8;
const MISSING: u8 = 16;
/// A value that a key cannot give back: a decimal has its digits, a document may hold numbers.
const INEXACT: u8 = 32;
/// An int64 beyond the range of int32.
const LARGE_INT64: u8 = 64;
/// A whole double beyond the range of int32 and within that of int64.
const LARGE_DOUBLE: u8 = 128;
/// A flag of the index, in the last field's bits: some key was shortened.
const LONG_KEY: u64 = 1 << 63;
/// Numbers with the same key as an int32.
const SMALL: u8 = INT32 | INT64 | DOUBLE;

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

/// The kinds of values that some bounds admit; values of one kind come back from keys in the same way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyKinds {
    /// Null and missing fields, which have one key.
    null: bool,
    numbers: bool,
    /// Values whose keys may not give them back: documents, for example, and strings, which may be symbols.
    others: bool,
}

impl KeyKinds {
    /// The kinds of all values between a value of type `first` and one of type `last`.
    pub fn between(first: Type, last: Type) -> Self {
        let [null, number, binary, timestamp] =
            [Type::Null, Type::Double, Type::Binary, Type::Timestamp].map(order::rank);
        let ranks = order::rank(first)..=order::rank(last);
        // Binary data, ObjectIds, booleans, dates and timestamps are neighbours in the order.
        let is_other = |rank: u8| rank != null && rank != number && !(binary..=timestamp).contains(&rank);
        Self { null: ranks.contains(&null), numbers: ranks.contains(&number), others: ranks.clone().any(is_other) }
    }

    /// The kinds without null and missing fields.
    #[must_use]
    pub fn without_null(self) -> Self {
        Self { null: false, ..self }
    }

    /// The kinds that either of the two has.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            null: self.null || other.null,
            numbers: self.numbers || other.numbers,
            others: self.others || other.others,
        }
    }
}

impl KeyTypes {
    /// For keys that were made before types were recorded: any type is possible.
    pub(crate) const UNKNOWN: Self = Self(!LONG_KEY);

    /// For `_id`s that are int32s, or of a type that keys distinguish.
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
            let flag = match flag(value) {
                // In the last field, this bit is the index's flag for shortened keys.
                LARGE_DOUBLE if field == FIELDS_MAX - 1 => INEXACT,
                flag => flag,
            };
            self.0 |= u64::from(flag) << (field * BITS_PER_FIELD);
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

    /// Whether keys give back all values of these kinds of a field at this path.
    pub fn are_exact_at(self, field: usize, path: &str, kinds: KeyKinds) -> bool {
        let types = self.of_field(field);
        let is_inexact = types & INEXACT != 0;
        // A field that is missing in a nested document may leave a part of that document to be shown.
        let is_null_known = types & MISSING == 0 || types & NULL == 0 && !path.contains('.');
        let are_numbers_known =
            !is_inexact && (types & SMALL).count_ones() <= 1 && !(has_large_int64s(types) && has_large_doubles(types));
        (!kinds.null || is_null_known) && (!kinds.numbers || are_numbers_known) && !(kinds.others && is_inexact)
    }

    /// Whether no document has null in the field, so that the key of null stands for a missing field alone. Meaningful
    /// only for indexes that record types.
    pub fn lack_null_at(self, field: usize) -> bool {
        self.of_field(field) & NULL == 0
    }

    /// Tells the documents' value in a field from the value `told` in their key.
    pub fn read_back(self, field: usize, told: Value) -> ReadBack {
        let types = self.of_field(field);
        let found = match told {
            Value::ObjectId(_)
            | Value::Boolean(_)
            | Value::DateTime(_)
            | Value::Timestamp(_)
            | Value::Binary { .. } => Some(told),
            Value::Null if types & (NULL | MISSING) == MISSING => return ReadBack::Missing,
            Value::Null if types & (NULL | MISSING) == NULL => Some(told),
            _ if types & INEXACT != 0 => None,
            // No other type has such keys: a decimal is inexact.
            Value::String(_) | Value::Double(_) => Some(told),
            Value::Int32(number) => match types & SMALL {
                INT32 => Some(told),
                INT64 => Some(Value::Int64(i64::from(number))),
                DOUBLE => Some(Value::Double(f64::from(number))),
                _ => None,
            },
            Value::Int64(number) => match (has_large_int64s(types), has_large_doubles(types)) {
                (true, false) => Some(told),
                // The key was made from a double, so the number converts back exactly.
                (false, true) => Some(Value::Double(number as f64)),
                _ => None,
            },
            _ => None,
        };
        found.map_or(ReadBack::Unknown, ReadBack::Value)
    }
}

/// Whether a field may have int64s beyond the range of int32. The flag for small int64s does not exclude large ones,
/// because earlier servers set it for every int64.
fn has_large_int64s(types: u8) -> bool {
    types & (INT64 | LARGE_INT64) != 0
}

/// As [`has_large_int64s`], for whole doubles.
fn has_large_doubles(types: u8) -> bool {
    types & (DOUBLE | LARGE_DOUBLE) != 0
}

fn flag(value: Option<ValueRef<'_>>) -> u8 {
    match value {
        None => MISSING,
        Some(ValueRef::Null) => NULL,
        Some(ValueRef::Int32(_)) => INT32,
        Some(ValueRef::Int64(number)) if i32::try_from(number).is_ok() => INT64,
        Some(ValueRef::Int64(_)) => LARGE_INT64,
        Some(ValueRef::Double(number)) if number.is_nan() || number == 0.0 && number.is_sign_negative() => INEXACT,
        Some(double @ ValueRef::Double(_)) => match number::as_i64_exact(double) {
            // The key of a fraction, or of a number beyond the range of int64, tells that it is a double.
            None => 0,
            Some(whole) if i32::try_from(whole).is_ok() => DOUBLE,
            Some(_) => LARGE_DOUBLE,
        },
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

    const ALL: KeyKinds = KeyKinds { null: true, numbers: true, others: true };

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
            (&["1", "2.5", "-0.5", "1e19", "Infinity", "'x'", "true"], true),
            (&["1", "NumberLong('5000000000')", "2.5", "1e19"], true),
            (&["1", "5000000000.0", "2.5", "-9223372036854775808.0"], true),
            (&["NumberLong(1)", "NumberLong('5000000000')", "0.5"], true),
            (&["NumberLong('5000000000')", "1.0", "2.5"], false),
            (&["NumberLong('5000000000')", "5000000000.0"], false),
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
            assert_eq!(types.are_exact_at(1, "v", ALL), *is_exact, "{values:?}");
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
        assert!(types.are_exact_at(0, "v", ALL) && !types.are_exact_at(0, "v.w", ALL));
        assert!(matches!(types.read_back(0, Value::Null), ReadBack::Missing));
        types.note(0, Some(ValueRef::Null));
        assert!(!types.are_exact_at(0, "v", ALL));
        assert!(matches!(types.read_back(0, Value::Null), ReadBack::Unknown));
    }

    #[test]
    fn only_the_kinds_that_a_scan_lets_through_must_be_exact() {
        let of = |values: &[&str], first, last| types_of(values).are_exact_at(1, "v", KeyKinds::between(first, last));
        let any = ["1", "1.0", "NumberDecimal('1')", "null", "{a: 1}", "/x/"];
        assert!(of(&any, Type::Binary, Type::Timestamp) && of(&any, Type::DateTime, Type::DateTime));
        assert!(!of(&any, Type::Int32, Type::Double) && !of(&any, Type::String, Type::String));
        assert!(!of(&any, Type::Timestamp, Type::Regex));
        assert!(of(&["1", "1.0", "null", "'x'"], Type::String, Type::Timestamp));
        let mut types = types_of(&["null", "1"]);
        types.note(1, None);
        assert!(types.are_exact_at(1, "v.w", KeyKinds::between(Type::Int32, Type::MaxKey)));
        assert!(!types.are_exact_at(1, "v.w", KeyKinds::between(Type::Undefined, Type::Int32)));
    }

    #[test]
    fn types_are_told_apart_by_field_and_only_of_the_first() {
        let mut types = KeyTypes::default();
        types.note(0, Some(ValueRef::Int32(1)));
        types.note(7, Some(ValueRef::Double(1.0)));
        types.note(8, Some(ValueRef::Int32(1)));
        assert!(types.are_exact_at(0, "a", ALL) && types.are_exact_at(7, "b", ALL));
        assert!(
            !types.are_exact_at(8, "c", ALL)
                && types.are_exact_at(8, "c", KeyKinds::between(Type::DateTime, Type::DateTime))
        );
        types.note(7, Some(ValueRef::Double(5e9)));
        assert!(!types.are_exact_at(7, "b", ALL) && !types.has_long_keys());
        assert!(KeyTypes::UNKNOWN.covers(types) && !KeyTypes::UNKNOWN.are_exact_at(0, "a", ALL));
        assert!(types.with(KeyTypes::UNKNOWN) == KeyTypes::UNKNOWN && !KeyTypes::default().covers(types));
    }
}
