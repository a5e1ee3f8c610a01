//! Dotted paths, and the values of a document at a path.

use bunko_bson::{ArrayRef, DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use std::fmt;

/// Maximum number of path components: no stored document is nested deeper.
/// Source: MongoDB limits, "Nested Depth for BSON Documents", less the 20 levels that a server keeps for itself.
const COMPONENTS_MAX: usize = 180;

/// One component of a path: a field name that may be an array index too.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Component {
    name: Box<str>,
    index: Option<usize>,
}

impl Component {
    fn parse(name: &str) -> Self {
        // "01" is only a field name: array indexes have no leading zeros.
        let canonical = name == "0" || !name.starts_with('0') && name.bytes().all(|byte| byte.is_ascii_digit());
        Self { name: name.into(), index: if canonical { name.parse().ok() } else { None } }
    }

    /// The field's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The array index that the name spells, if it is all digits without a leading zero.
    pub fn index(&self) -> Option<usize> {
        self.index
    }
}

/// A dotted path, already split. Without components it stands for the tested value itself, as inside `{$elemMatch:
/// {$gt: 1}}`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Path {
    text: Box<str>,
    components: Vec<Component>,
}

impl Path {
    /// Splits at dots; `""` and `"a."` name the empty field, as in MongoDB.
    /// # Errors
    /// 5729100 for more than 180 components.
    pub fn parse(text: &str) -> Result<Self> {
        let components: Vec<_> = text.split('.').map(Component::parse).collect();
        if components.len() > COMPONENTS_MAX {
            return Err(Failure::new(ErrorCode(5_729_100), "FieldPath is too long"));
        }
        Ok(Self { text: text.into(), components })
    }

    /// The path that stands for the tested value itself.
    pub(crate) fn itself() -> Self {
        Self { text: "".into(), components: Vec::new() }
    }

    /// The path as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The components, outermost first.
    pub fn components(&self) -> &[Component] {
        &self.components
    }

    /// Whether this stands for the tested value itself.
    pub fn is_itself(&self) -> bool {
        self.components.is_empty()
    }

    /// Whether this is the field with that path, and not the tested value itself.
    pub fn is(&self, field: &str) -> bool {
        !self.is_itself() && self.as_str() == field
    }

    /// The part of `field` below this path: `b.c` of `a.b.c` below `a`.
    pub fn below<'f>(&self, field: &'f str) -> Option<&'f str> {
        field.strip_prefix(self.as_str())?.strip_prefix('.')
    }

    /// The path below its first component.
    pub(crate) fn below_first(&self) -> Self {
        match self.text.split_once('.') {
            Some((_, below)) => Self { text: below.into(), components: self.components[1..].to_vec() },
            None => Self::itself(),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text)
    }
}

/// The values that an array at the end of a path stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// Each element, then the array itself: for most operators.
    ElementsAndWhole,
    /// Only the array itself: for `$size` and `$elemMatch`.
    Whole,
}

/// Visits the values at a path.
pub(crate) trait Visitor {
    /// Whether a value matches; `None` is a missing value. `index` is the position in the outermost array that the path
    /// traverses without naming an index.
    fn test(&mut self, value: Option<ValueRef<'_>>, index: Option<usize>) -> bool;

    /// Counts an array element. Returns false if the operation has to stop; then any answer will do.
    fn goes_on(&mut self) -> bool;
}

/// A subject that filters are matched against.
pub(crate) trait Subject: Copy {
    /// Tests the values at `path` in order until one matches.
    fn any(self, path: &Path, leaves: Leaves, visitor: &mut impl Visitor) -> bool;

    /// The whole document for `$expr`, if the subject is one.
    fn document(&self) -> Option<DocumentRef<'_>>;
}

impl Subject for DocumentRef<'_> {
    #[inline]
    fn any(self, path: &Path, leaves: Leaves, visitor: &mut impl Visitor) -> bool {
        visit_document(path.components(), self, None, leaves, visitor)
    }

    fn document(&self) -> Option<DocumentRef<'_>> {
        Some(*self)
    }
}

/// A value treated as a field: arrays inside it are traversed as in a document.
#[derive(Clone, Copy)]
pub(crate) struct AsField<'a>(pub ValueRef<'a>);

impl Subject for AsField<'_> {
    fn any(self, path: &Path, leaves: Leaves, visitor: &mut impl Visitor) -> bool {
        visit_value(path.components(), Some(self.0), None, leaves, visitor)
    }

    fn document(&self) -> Option<DocumentRef<'_>> {
        None
    }
}

/// One array element under `{$elemMatch: {$op: ...}}`; arrays inside it are not traversed.
#[derive(Clone, Copy)]
pub(crate) struct AsElement<'a>(pub ValueRef<'a>);

impl Subject for AsElement<'_> {
    fn any(self, path: &Path, _leaves: Leaves, visitor: &mut impl Visitor) -> bool {
        debug_assert!(path.is_itself(), "conditions on elements name no field");
        visitor.test(Some(self.0), None)
    }

    fn document(&self) -> Option<DocumentRef<'_>> {
        None
    }
}

fn visit_document(
    path: &[Component],
    document: DocumentRef<'_>,
    outer: Option<usize>,
    leaves: Leaves,
    visitor: &mut impl Visitor,
) -> bool {
    let Some((first, rest)) = path.split_first() else {
        return visitor.test(Some(ValueRef::Document(document)), outer);
    };
    visit_value(rest, document.get(first.name()), outer, leaves, visitor)
}

fn visit_value(
    rest: &[Component],
    value: Option<ValueRef<'_>>,
    outer: Option<usize>,
    leaves: Leaves,
    visitor: &mut impl Visitor,
) -> bool {
    match value {
        Some(ValueRef::Array(array)) if rest.is_empty() => visit_leaf_array(array, outer, leaves, visitor),
        Some(ValueRef::Array(array)) => visit_array(rest, array, outer, leaves, visitor),
        value if rest.is_empty() => visitor.test(value, outer),
        Some(ValueRef::Document(document)) => visit_document(rest, document, outer, leaves, visitor),
        // A path that meets a scalar has no value.
        _ => visitor.test(None, outer),
    }
}

fn visit_leaf_array(array: ArrayRef<'_>, outer: Option<usize>, leaves: Leaves, visitor: &mut impl Visitor) -> bool {
    if leaves == Leaves::ElementsAndWhole {
        for (index, element) in array.iter().enumerate() {
            if !visitor.goes_on() || visitor.test(Some(element), outer.or(Some(index))) {
                return true;
            }
        }
    }
    visitor.test(Some(ValueRef::Array(array)), outer)
}

/// Visits an array in the middle of a path: enters its documents by name, and a numeric component also picks one
/// element. Other elements yield nothing, not even a missing value: `{"a.b": null}` does not match `{a: [1]}`.
fn visit_array(
    rest: &[Component],
    array: ArrayRef<'_>,
    outer: Option<usize>,
    leaves: Leaves,
    visitor: &mut impl Visitor,
) -> bool {
    let (next, below) = (rest[0].index(), &rest[1..]);
    for (index, element) in array.iter().enumerate() {
        if !visitor.goes_on() {
            return true;
        }
        if let ValueRef::Document(document) = element
            && visit_document(rest, document, outer.or(Some(index)), leaves, visitor)
        {
            return true;
        }
        if next == Some(index) && visit_indexed(below, element, outer, leaves, visitor) {
            return true;
        }
    }
    false
}

/// Visits the element that a numeric component picked. Its index is not a position, since the path names it. At the end of
/// the path it is tested whole: `{"a.0": 1}` does not match `{a: [[1]]}`.
fn visit_indexed(
    below: &[Component],
    element: ValueRef<'_>,
    outer: Option<usize>,
    leaves: Leaves,
    visitor: &mut impl Visitor,
) -> bool {
    match element {
        element if below.is_empty() => visitor.test(Some(element), outer),
        ValueRef::Document(document) => visit_document(below, document, outer, leaves, visitor),
        ValueRef::Array(array) => visit_array(below, array, outer, leaves, visitor),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_numbers_are_indexes() {
        let path = Path::parse("a.0.10.01.-1.99999999999999999999.").expect("a path");
        let indexes: Vec<_> = path.components().iter().map(Component::index).collect();
        assert_eq!(indexes, [None, Some(0), Some(10), None, None, None, None]);
        assert_eq!(path.components().last().expect("seven").name(), "");
    }

    #[test]
    fn below_the_last_component_is_the_value_itself() {
        let path = |text| Path::parse(text).expect("a path");
        assert!(path("x").below_first().is_itself());
        assert_eq!(path("x.a.b").below_first(), path("a.b"));
    }

    #[test]
    fn a_path_has_a_hundred_and_eighty_components() {
        assert!(Path::parse(&["a"; 180].join(".")).is_ok());
        let failure = Path::parse(&["a"; 181].join(".")).expect_err("one more");
        assert_eq!((failure.code(), failure.message()), (ErrorCode(5_729_100), "FieldPath is too long"));
    }
}
