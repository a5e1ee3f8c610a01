//! A value that replaces a value of a document without copying the document.

use crate::{Dependencies, Evaluated, FieldPath};
use bunko_bson::{DocumentBuf, DocumentRef, EncodedValue, ValueRef};

/// A value to use at a path of a document instead of the document's own. The path leads through documents only.
#[derive(Clone, Copy, Debug)]
pub struct StandIn<'a> {
    path: &'a FieldPath,
    value: EncodedValue<'a>,
}

impl<'a> StandIn<'a> {
    /// A stand-in for a path that leads through documents only.
    #[inline]
    pub fn new(path: &'a FieldPath, value: EncodedValue<'a>) -> Self {
        Self { path, value }
    }

    /// The path of the replaced value.
    pub fn path(&self) -> &'a FieldPath {
        self.path
    }

    /// The value.
    #[inline]
    pub fn encoded(&self) -> EncodedValue<'a> {
        self.value
    }

    /// The value at a path that leads to the stand-in or below it; `None` for other paths, which are read from the
    /// document.
    #[inline]
    pub(crate) fn at(&self, path: &FieldPath) -> Option<Evaluated<'a>> {
        let (own, asked) = (self.path.components(), path.components());
        if asked.len() < own.len() || asked[..own.len()] != *own {
            return None;
        }
        Some(self.value.value().map_or(Evaluated::Missing, |value| FieldPath::follow_from(value, &asked[own.len()..])))
    }

    /// Whether `read` includes no document that contains the value at `path`. Otherwise a stand-in would not act as a
    /// changed document.
    pub fn is_apart_from(path: &FieldPath, read: &Dependencies) -> bool {
        let Dependencies::Fields(fields) = read else { return false };
        let is_above = |field: &String| {
            let mut components = path.components().iter();
            field.split('.').all(|name| components.next().is_some_and(|own| **own == *name))
                && components.next().is_some()
        };
        !fields.iter().any(is_above)
    }

    /// The document with the stand-in written into it.
    pub fn put_into(&self, document: DocumentRef<'_>) -> DocumentBuf {
        with_path(document, self.path.components(), self.value.value())
    }
}

/// Returns the document with the value at a path set, or with the field removed if `value` is `None`.
pub fn with_path(document: DocumentRef<'_>, path: &[Box<str>], value: Option<ValueRef<'_>>) -> DocumentBuf {
    let mut changed = DocumentBuf::new();
    let Some((name, rest)) = path.split_first() else { return changed };
    let mut found = false;
    for element in document {
        if found || *element.name != **name {
            changed.append(element.name, element.value);
            continue;
        }
        found = true;
        set_field(&mut changed, name, rest, element.value.as_document().unwrap_or(DocumentRef::EMPTY), value);
    }
    if !found && value.is_some() {
        set_field(&mut changed, name, rest, DocumentRef::EMPTY, value);
    }
    changed
}

fn set_field(
    into: &mut DocumentBuf,
    name: &str,
    rest: &[Box<str>],
    inner: DocumentRef<'_>,
    value: Option<ValueRef<'_>>,
) {
    if !rest.is_empty() {
        into.append(name, &with_path(inner, rest, value));
    } else if let Some(value) = value {
        into.append(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EvaluationContext, Expression, ParseScope, Variables};
    use bunko_operation::OperationContext;
    use bunko_testkit::shell;
    use std::collections::BTreeSet;

    const DOCUMENT: &str = "{x: 1, a: {y: 2, b: [{c: 1}, {c: [2]}, 7, null], z: {b: 5}}, b: 9, ab: 3}";

    #[test]
    fn paths_see_what_they_would_see_in_the_changed_document() {
        let document = shell::parse_document(DOCUMENT).expect("a document");
        let path = FieldPath::parse("a.b").expect("a path");
        let Evaluated::Ref(ValueRef::Array(array)) = path.of(document.as_ref()) else { panic!("an array") };
        let (variables, operation) = (Variables::new(), OperationContext::unlimited());
        for element in array.encoded() {
            let stand_in = StandIn::new(&path, element);
            let changed = stand_in.put_into(document.as_ref());
            for read in ["a.b", "a.b.c", "a.b.c.d", "a.y", "a.z.b", "x", "b", "ab", "none.b", "a.bb"] {
                let text = format!("${read}");
                let expression = Expression::parse(ValueRef::String(&text), &ParseScope::default()).expect("parses");
                let context = EvaluationContext::new(document.as_ref(), &variables, 0, &operation);
                let stood_in = context.with_stand_in(&stand_in);
                let found = expression.evaluate(&stood_in).expect("evaluates");
                let in_changed = EvaluationContext::new(changed.as_ref(), &variables, 0, &operation);
                let expected = expression.evaluate(&in_changed).expect("evaluates");
                let shown = |value: &Evaluated<'_>| format!("{:?}", value.get());
                assert_eq!(shown(&found), shown(&expected), "{read} with {element:?}");
            }
        }
    }

    #[test]
    fn whatever_holds_the_value_needs_the_changed_document() {
        let path = FieldPath::parse("a.b").expect("a path");
        let is_apart = |fields: &[&str]| {
            let fields: BTreeSet<String> = fields.iter().map(ToString::to_string).collect();
            StandIn::is_apart_from(&path, &Dependencies::Fields(fields))
        };
        assert!(is_apart(&["a.b", "a.b.c", "a.y", "ab", "x.a", "b"]));
        assert!(!is_apart(&["x", "a"]));
        assert!(!StandIn::is_apart_from(&path, &Dependencies::All));
    }
}
