//! The order of strings: by their bytes, or by a collator.
//!
//! **Invariant:** under one [`StringOrder`], comparison, equality and key strings agree, as they do for bytes. A
//! comparison by bytes calls nothing through a pointer: functions that take a `StringOrder` test once for each value
//! whether there is a collator.
//!
//! A collator applies to strings and symbols that are values, also inside documents and arrays. It does not apply to
//! names of fields, code or regular expressions.

use crate::order::{self, rank};
use crate::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, Value, ValueRef};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// An order of strings other than that of their bytes.
pub trait Collator: fmt::Debug + Send + Sync {
    /// Compares two strings. Different strings may be equal.
    fn compare(&self, a: &str, b: &str) -> Ordering;

    /// Appends a sort key: bytes that have the order of the strings.
    fn write_sort_key(&self, text: &str, key: &mut Vec<u8>);

    /// Everything that determines this order, in the form that users see. Orders with equal specifications are the
    /// same.
    fn specification(&self) -> DocumentRef<'_>;
}

/// How an operator uses the order of strings, as an entry in its table. Tests walk the tables and compare each entry
/// with the operator's answers, so that no operator forgets the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StringUse {
    /// The operator compares values, or holds conditions that do. It compares strings in the order that the command
    /// asks for.
    Collated,
    /// The operator compares no values, or compares strings by their bytes in any order.
    AsBytes,
}

/// The order of strings. The default is by their bytes. Copies share the collator.
#[derive(Clone, Debug, Default)]
pub struct StringOrder(Option<Arc<dyn Collator>>);

impl StringOrder {
    /// The order of strings by their bytes.
    pub const BYTES: &'static Self = &Self(None);

    /// The order of strings by a collator.
    pub fn collated(collator: Arc<dyn Collator>) -> Self {
        Self(Some(collator))
    }

    /// The collator; `None` if strings are ordered by their bytes.
    #[inline]
    pub fn collator(&self) -> Option<&dyn Collator> {
        self.0.as_deref()
    }

    /// Whether strings are in the order of their bytes.
    #[inline]
    pub fn is_bytes(&self) -> bool {
        self.0.is_none()
    }

    /// As [`order::compare`].
    #[inline]
    pub fn compare(&self, a: ValueRef<'_>, b: ValueRef<'_>) -> Ordering {
        match &self.0 {
            None => order::compare(a, b),
            Some(collator) => compare(a, b, collator.as_ref()),
        }
    }

    /// As [`order::equal`].
    #[inline]
    pub fn equal(&self, a: ValueRef<'_>, b: ValueRef<'_>) -> bool {
        self.compare(a, b).is_eq()
    }

    /// As [`Self::compare`] for two strings.
    #[inline]
    pub fn compare_strings(&self, a: &str, b: &str) -> Ordering {
        match &self.0 {
            None => a.cmp(b),
            Some(collator) => collator.compare(a, b),
        }
    }

    /// The value in the form in which keys hold it: under a collator, each string is replaced by its sort key, with a
    /// character for each byte. The order of such values by bytes is this order of the original values.
    pub fn in_keys(&self, value: ValueRef<'_>) -> Value {
        self.collator().map_or_else(|| value.to_value(), |collator| in_keys(value, collator))
    }

    /// Whether a comparison with `value` may differ from one by bytes: there is a collator and the value holds a
    /// string.
    pub fn concerns(&self, value: ValueRef<'_>) -> bool {
        !self.is_bytes() && Self::holds_strings(value)
    }

    /// Whether a value is, or holds at any depth, a string.
    pub fn holds_strings(value: ValueRef<'_>) -> bool {
        match value {
            ValueRef::String(_) | ValueRef::Symbol(_) => true,
            ValueRef::Document(document) => document.iter().any(|element| Self::holds_strings(element.value)),
            ValueRef::Array(array) => array.iter().any(Self::holds_strings),
            _ => false,
        }
    }
}

/// Compares the orders themselves.
impl PartialEq for StringOrder {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(own), Some(other)) => Arc::ptr_eq(own, other) || own.specification() == other.specification(),
            _ => false,
        }
    }
}

impl Eq for StringOrder {}

/// A string's sort key as text: each byte becomes the character with its number, which keeps the order.
pub(crate) fn key_text(text: &str, collator: &dyn Collator) -> String {
    let mut sort_key = Vec::with_capacity(2 * text.len() + 8);
    collator.write_sort_key(text, &mut sort_key);
    sort_key.into_iter().map(char::from).collect()
}

fn in_keys(value: ValueRef<'_>, collator: &dyn Collator) -> Value {
    match value {
        ValueRef::String(text) | ValueRef::Symbol(text) => Value::String(key_text(text, collator)),
        ValueRef::Document(document) => {
            let mut made = DocumentBuf::new();
            for element in document {
                made.append(element.name, &in_keys(element.value, collator));
            }
            Value::Document(made)
        }
        ValueRef::Array(array) => {
            let mut made = ArrayBuf::new();
            for element in array.iter() {
                made.push(&in_keys(element, collator));
            }
            Value::Array(made)
        }
        value => value.to_value(),
    }
}

fn compare(a: ValueRef<'_>, b: ValueRef<'_>, collator: &dyn Collator) -> Ordering {
    match (a, b) {
        (ValueRef::String(a) | ValueRef::Symbol(a), ValueRef::String(b) | ValueRef::Symbol(b)) => {
            collator.compare(a, b)
        }
        (ValueRef::Document(a), ValueRef::Document(b)) => compare_documents(a, b, collator),
        (ValueRef::Array(a), ValueRef::Array(b)) => compare_arrays(a, b, collator),
        (a, b) => order::compare(a, b),
    }
}

fn compare_documents(a: DocumentRef<'_>, b: DocumentRef<'_>, collator: &dyn Collator) -> Ordering {
    let (mut first, mut second) = (a.iter(), b.iter());
    loop {
        let (a, b) = match (first.next(), second.next()) {
            (Some(a), Some(b)) => (a, b),
            (a, b) => return a.is_some().cmp(&b.is_some()),
        };
        let order = rank(a.value.kind())
            .cmp(&rank(b.value.kind()))
            .then_with(|| a.name.cmp(b.name))
            .then_with(|| compare(a.value, b.value, collator));
        if order.is_ne() {
            return order;
        }
    }
}

fn compare_arrays(a: ArrayRef<'_>, b: ArrayRef<'_>, collator: &dyn Collator) -> Ordering {
    a.iter()
        .zip(b.iter())
        .map(|(a, b)| compare(a, b, collator))
        .find(|order| order.is_ne())
        .unwrap_or_else(|| a.count().cmp(&b.count()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_string::Direction;
    use crate::{ArrayBuf, DocumentBuf};

    /// Compares letters without their case.
    #[derive(Debug)]
    struct WithoutCase;

    impl Collator for WithoutCase {
        fn compare(&self, a: &str, b: &str) -> Ordering {
            a.to_lowercase().cmp(&b.to_lowercase())
        }

        fn write_sort_key(&self, text: &str, key: &mut Vec<u8>) {
            key.extend_from_slice(text.to_lowercase().as_bytes());
        }

        fn specification(&self) -> DocumentRef<'_> {
            DocumentRef::EMPTY
        }
    }

    #[test]
    fn strings_are_collated_at_any_depth_and_names_are_not() {
        let strings = StringOrder::collated(Arc::new(WithoutCase));
        let array = |text: &str| [text, "z"].into_iter().collect::<ArrayBuf>();
        let document = |name: &str, text: &str| DocumentBuf::new().with(name, &array(text));
        let (lower, upper) = (document("n", "a\u{1}"), document("n", "A\u{1}"));
        let (other, name) = (document("n", "b"), document("N", "a\u{1}"));
        let values = [&lower, &upper, &other, &name].map(|document| ValueRef::Document(document.as_ref()));
        assert!(strings.equal(values[0], values[1]));
        assert!(!StringOrder::BYTES.equal(values[0], values[1]));
        assert!(!strings.equal(values[0], values[3]));
        for a in values {
            for b in values {
                let key = |value, direction| {
                    let mut key = Vec::new();
                    strings.append_key(&mut key, value, direction);
                    key
                };
                let wanted = strings.compare(a, b);
                let (a_in_keys, b_in_keys) = (strings.in_keys(a), strings.in_keys(b));
                assert_eq!(order::compare(a_in_keys.as_ref(), b_in_keys.as_ref()), wanted, "{a:?}, {b:?}");
                assert_eq!(key(a, Direction::Ascending).cmp(&key(b, Direction::Ascending)), wanted, "{a:?}, {b:?}");
                assert_eq!(key(b, Direction::Descending).cmp(&key(a, Direction::Descending)), wanted, "{a:?}, {b:?}");
            }
        }
    }

    #[test]
    fn only_values_with_strings_are_concerned() {
        let strings = StringOrder::collated(Arc::new(WithoutCase));
        let document = DocumentBuf::new().with("a", &DocumentBuf::new().with("b", "x"));
        assert!(strings.concerns(ValueRef::Document(document.as_ref())));
        assert!(!strings.concerns(ValueRef::Int32(1)));
        assert!(!strings.concerns(ValueRef::JavaScript("x")));
        assert!(!StringOrder::BYTES.concerns(ValueRef::String("x")));
    }
}
