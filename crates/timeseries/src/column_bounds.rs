//! The least and the greatest values in a bucket's columns.
//!
//! As in MongoDB, each field of a document or array has bounds of its own, so that filters on such fields apply to
//! buckets.

use bunko_bson::{ArrayBuf, DocumentBuf, Value, ValueRef, order};
use std::cmp::Ordering;

/// The least or the greatest of the added values.
#[derive(Debug)]
pub(crate) struct Bound {
    /// A new value becomes the bound if it compares in this way with the current one.
    wanted: Ordering,
    value: Option<Node>,
}

#[derive(Debug)]
enum Node {
    Value(Value),
    Document(Vec<(String, Node)>),
    Array(Vec<Node>),
}

impl Bound {
    pub fn least() -> Self {
        Self { wanted: Ordering::Less, value: None }
    }

    pub fn greatest() -> Self {
        Self { wanted: Ordering::Greater, value: None }
    }

    /// Takes another value into account.
    pub fn add(&mut self, value: ValueRef<'_>) {
        match &mut self.value {
            Some(node) => node.add(value, self.wanted),
            None => self.value = Some(Node::of(value)),
        }
    }

    /// The bound; `None` if no value was added.
    pub fn value(&self) -> Option<Value> {
        self.value.as_ref().map(Node::value)
    }
}

impl Node {
    fn of(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Document(document) => {
                Self::Document(document.iter().map(|field| (field.name.to_owned(), Self::of(field.value))).collect())
            }
            ValueRef::Array(array) => Self::Array(array.iter().map(Self::of).collect()),
            value => Self::Value(value.to_value()),
        }
    }

    fn add(&mut self, value: ValueRef<'_>, wanted: Ordering) {
        match (&mut *self, value) {
            (Self::Document(fields), ValueRef::Document(document)) => {
                for (position, field) in document.iter().enumerate() {
                    // Documents of one column usually have the same fields in the same order.
                    let at = match fields.get(position) {
                        Some((name, _)) if name == field.name => Some(position),
                        _ => fields.iter().position(|(name, _)| name == field.name),
                    };
                    match at {
                        Some(at) => fields[at].1.add(field.value, wanted),
                        None => fields.push((field.name.to_owned(), Self::of(field.value))),
                    }
                }
            }
            (Self::Array(nodes), ValueRef::Array(array)) => {
                for (position, element) in array.iter().enumerate() {
                    match nodes.get_mut(position) {
                        Some(node) => node.add(element, wanted),
                        None => nodes.push(Self::of(element)),
                    }
                }
            }
            (node, value) => {
                if order::compare(value, node.value().as_ref()) == wanted {
                    *node = Self::of(value);
                }
            }
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::Value(value) => value.clone(),
            Self::Document(fields) => {
                let mut document = DocumentBuf::new();
                for (name, node) in fields {
                    document.append(name, node.value().as_ref());
                }
                Value::Document(document)
            }
            Self::Array(nodes) => {
                let mut array = ArrayBuf::new();
                for node in nodes {
                    array.push(node.value().as_ref());
                }
                Value::Array(array)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_is(bound: &Bound, expected: ValueRef<'_>) {
        let value = bound.value().expect("a bound");
        assert!(order::equal(value.as_ref(), expected), "{value:?}, expected {expected:?}");
    }

    #[test]
    fn documents_have_bounds_field_by_field() {
        let (mut least, mut greatest) = (Bound::least(), Bound::greatest());
        for (a, b) in [(1, "y"), (3, "x"), (2, "z")] {
            let document = DocumentBuf::new().with("a", a).with("b", b);
            least.add((&document).into());
            greatest.add((&document).into());
        }
        assert_is(&least, (&DocumentBuf::new().with("a", 1).with("b", "x")).into());
        assert_is(&greatest, (&DocumentBuf::new().with("a", 3).with("b", "z")).into());
    }

    #[test]
    fn values_of_different_types_order_as_types_do() {
        let (mut least, mut greatest) = (Bound::least(), Bound::greatest());
        let document = DocumentBuf::new().with("a", 1);
        for value in [ValueRef::String("s"), (&document).into(), ValueRef::Int32(5)] {
            least.add(value);
            greatest.add(value);
        }
        assert_is(&least, ValueRef::Int32(5));
        assert_is(&greatest, (&document).into());
    }
}
