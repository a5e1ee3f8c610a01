//! MongoDB's canonical order over values of all types.
//!
//! **Invariant:** [`compare`] and the bytes of [`crate::key_string`] order any two values alike, which a property test
//! checks. Values that are equal here (`1` and `1.0`, a symbol and its string) have one key string.
//!
//! Source: MongoDB manual, "Comparison/Sort Order".

use crate::number::Number;
use crate::{ArrayRef, DocumentRef, Type, ValueRef};
use std::cmp::Ordering;

/// The brackets, with their numbers in key strings: between any two is an unused byte, and numbers and booleans have
/// more than one byte.
pub(crate) mod bracket {
    pub(crate) const MIN_KEY: u8 = 0x02;
    pub(crate) const UNDEFINED: u8 = 0x04;
    pub(crate) const NULL: u8 = 0x06;
    pub(crate) const NUMBER: u8 = 0x08;
    pub(crate) const STRING: u8 = 0x21;
    pub(crate) const DOCUMENT: u8 = 0x23;
    pub(crate) const ARRAY: u8 = 0x25;
    pub(crate) const BINARY: u8 = 0x27;
    pub(crate) const OBJECT_ID: u8 = 0x29;
    pub(crate) const BOOLEAN: u8 = 0x2b;
    pub(crate) const BOOLEAN_TRUE: u8 = 0x2c;
    pub(crate) const DATE_TIME: u8 = 0x2e;
    pub(crate) const TIMESTAMP: u8 = 0x30;
    pub(crate) const REGEX: u8 = 0x32;
    pub(crate) const DB_POINTER: u8 = 0x34;
    pub(crate) const JAVASCRIPT: u8 = 0x36;
    pub(crate) const JAVASCRIPT_WITH_SCOPE: u8 = 0x38;
    pub(crate) const MAX_KEY: u8 = 0x3a;
}

/// The type's bracket. Values of different brackets order as the brackets do. All numbers have one bracket, as do
/// strings and symbols.
#[inline]
pub fn rank(kind: Type) -> u8 {
    match kind {
        Type::MinKey => bracket::MIN_KEY,
        Type::Undefined => bracket::UNDEFINED,
        Type::Null => bracket::NULL,
        Type::Double | Type::Int32 | Type::Int64 | Type::Decimal128 => bracket::NUMBER,
        Type::String | Type::Symbol => bracket::STRING,
        Type::Document => bracket::DOCUMENT,
        Type::Array => bracket::ARRAY,
        Type::Binary => bracket::BINARY,
        Type::ObjectId => bracket::OBJECT_ID,
        Type::Boolean => bracket::BOOLEAN,
        Type::DateTime => bracket::DATE_TIME,
        Type::Timestamp => bracket::TIMESTAMP,
        Type::Regex => bracket::REGEX,
        Type::DbPointer => bracket::DB_POINTER,
        Type::JavaScript => bracket::JAVASCRIPT,
        Type::JavaScriptWithScope => bracket::JAVASCRIPT_WITH_SCOPE,
        Type::MaxKey => bracket::MAX_KEY,
    }
}

/// Compares two values of any types: first by bracket, then within it. Strings compare as bytes (no collation).
#[inline]
pub fn compare(a: ValueRef<'_>, b: ValueRef<'_>) -> Ordering {
    match (a, b) {
        (ValueRef::Int32(a), ValueRef::Int32(b)) => a.cmp(&b),
        (ValueRef::Int64(a), ValueRef::Int64(b)) => a.cmp(&b),
        (ValueRef::String(a) | ValueRef::Symbol(a), ValueRef::String(b) | ValueRef::Symbol(b)) => a.cmp(b),
        (ValueRef::ObjectId(a), ValueRef::ObjectId(b)) => a.cmp(&b),
        (ValueRef::DateTime(a), ValueRef::DateTime(b)) => a.cmp(&b),
        (ValueRef::Document(a), ValueRef::Document(b)) => compare_documents(a, b),
        (ValueRef::Array(a), ValueRef::Array(b)) => compare_arrays(a, b),
        _ => compare_rarer(a, b),
    }
}

fn compare_rarer(a: ValueRef<'_>, b: ValueRef<'_>) -> Ordering {
    match (a, b) {
        (ValueRef::Binary { subtype: a, bytes: first }, ValueRef::Binary { subtype: b, bytes: second }) => {
            first.len().cmp(&second.len()).then(a.cmp(&b)).then_with(|| first.cmp(second))
        }
        (ValueRef::Boolean(a), ValueRef::Boolean(b)) => a.cmp(&b),
        (ValueRef::Timestamp(a), ValueRef::Timestamp(b)) => a.cmp(&b),
        (ValueRef::Regex { pattern: a, options: first }, ValueRef::Regex { pattern: b, options: second }) => {
            a.cmp(b).then_with(|| first.cmp(second))
        }
        (ValueRef::DbPointer { namespace: a, id: first }, ValueRef::DbPointer { namespace: b, id: second }) => {
            a.len().cmp(&b.len()).then_with(|| a.cmp(b)).then_with(|| first.cmp(&second))
        }
        (ValueRef::JavaScript(a), ValueRef::JavaScript(b)) => a.cmp(b),
        (
            ValueRef::JavaScriptWithScope { code: a, scope: first },
            ValueRef::JavaScriptWithScope { code: b, scope: second },
        ) => a.cmp(b).then_with(|| compare_documents(first, second)),
        _ => match (Number::of(a), Number::of(b)) {
            (Some(a), Some(b)) => a.compare(b),
            _ => rank(a.kind()).cmp(&rank(b.kind())),
        },
    }
}

/// Compares two documents field by field: the bracket of the value, then the name, then the value. A document that ends
/// first is less.
pub fn compare_documents(a: DocumentRef<'_>, b: DocumentRef<'_>) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    let (mut first, mut second) = (a.iter(), b.iter());
    loop {
        let (a, b) = match (first.next(), second.next()) {
            (Some(a), Some(b)) => (a, b),
            (a, b) => return a.is_some().cmp(&b.is_some()),
        };
        let order = rank(a.value.kind())
            .cmp(&rank(b.value.kind()))
            .then_with(|| a.name.cmp(b.name))
            .then_with(|| compare(a.value, b.value));
        if order.is_ne() {
            return order;
        }
    }
}

/// Compares two arrays element by element. An array that ends first is less.
pub fn compare_arrays(a: ArrayRef<'_>, b: ArrayRef<'_>) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    a.iter()
        .zip(b.iter())
        .map(|(a, b)| compare(a, b))
        .find(|order| order.is_ne())
        .unwrap_or_else(|| a.count().cmp(&b.count()))
}

/// Whether two values are equal in the canonical order: `1` equals `1.0`, `NaN` equals itself.
#[inline]
pub fn equal(a: ValueRef<'_>, b: ValueRef<'_>) -> bool {
    compare(a, b).is_eq()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArrayBuf, Decimal128, DocumentBuf, ObjectId, Timestamp};

    /// Every type at least once, each value above the one before.
    #[test]
    fn brackets_stand_in_canonical_order() {
        let small = DocumentBuf::new().with("a", 1);
        let large = DocumentBuf::new().with("a", 2);
        let array: ArrayBuf = [1, 2].into_iter().collect();
        let id = ObjectId([9; 12]);
        let ascending = [
            ValueRef::MinKey,
            ValueRef::Undefined,
            ValueRef::Null,
            ValueRef::Double(f64::NAN),
            ValueRef::Double(f64::NEG_INFINITY),
            ValueRef::Int64(i64::MIN),
            ValueRef::Int32(-1),
            ValueRef::Double(0.5),
            ValueRef::Decimal128(Decimal128::parse("0.6").expect("a number")),
            ValueRef::Int64(1 << 53),
            ValueRef::Int64((1 << 53) + 1),
            ValueRef::Double(9_007_199_254_740_994.0),
            ValueRef::String(""),
            ValueRef::Symbol("B"),
            ValueRef::String("a"),
            ValueRef::String("a\0"),
            ValueRef::String("aa"),
            ValueRef::Document(DocumentRef::EMPTY),
            ValueRef::Document(small.as_ref()),
            ValueRef::Document(large.as_ref()),
            ValueRef::Array(ArrayRef::EMPTY),
            ValueRef::Array(array.as_ref()),
            ValueRef::Binary { subtype: 4, bytes: &[1] },
            ValueRef::Binary { subtype: 0, bytes: &[0, 0] },
            ValueRef::Binary { subtype: 4, bytes: &[0, 0] },
            ValueRef::ObjectId(id),
            ValueRef::Boolean(false),
            ValueRef::Boolean(true),
            ValueRef::DateTime(-1),
            ValueRef::DateTime(0),
            ValueRef::Timestamp(Timestamp { seconds: 1, increment: 0 }),
            ValueRef::Timestamp(Timestamp { seconds: u32::MAX, increment: 0 }),
            ValueRef::Regex { pattern: "a", options: "" },
            ValueRef::Regex { pattern: "a", options: "i" },
            ValueRef::DbPointer { namespace: "z", id },
            ValueRef::DbPointer { namespace: "a.b", id },
            ValueRef::JavaScript("f"),
            ValueRef::JavaScriptWithScope { code: "f", scope: small.as_ref() },
            ValueRef::JavaScriptWithScope { code: "f", scope: large.as_ref() },
            ValueRef::MaxKey,
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(compare(*a, *b), i.cmp(&j), "{a:?} and {b:?}");
            }
        }
    }

    #[test]
    fn documents_compare_type_then_name_then_value() {
        let order = |a: DocumentBuf, b: DocumentBuf| compare_documents(a.as_ref(), b.as_ref());
        let document = DocumentBuf::new;
        assert_eq!(order(document().with("b", 9), document().with("a", "x")), Ordering::Less);
        assert_eq!(order(document().with("b", 1), document().with("a", 2)), Ordering::Greater);
        assert_eq!(order(document().with("a", 1), document().with("a", 1.0)), Ordering::Equal);
        assert_eq!(order(document().with("a", 1), document().with("a", 1).with("b", 1)), Ordering::Less);
        assert_eq!(
            order(document().with("a", 1).with("b", 1), document().with("b", 1).with("a", 1)),
            Ordering::Less,
            "the order of fields matters"
        );
    }
}
