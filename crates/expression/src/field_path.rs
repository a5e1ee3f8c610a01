//! Dotted paths into documents, as expressions follow them.

use crate::Evaluated;
use bunko_bson::{ArrayBuf, DocumentRef, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

/// Longest accepted path, in components.
/// Source: MongoDB limits, "Nested Depth for BSON Documents".
const COMPONENTS_MAX: usize = 200;

/// Longest path at which a stage itself reads or writes; expressions accept one component more.
const PLACE_COMPONENTS_MAX: usize = COMPONENTS_MAX - 1;

/// A dotted path, such as `a.b`. A number is a field name, never an array index.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct FieldPath {
    components: Box<[Box<str>]>,
}

impl FieldPath {
    /// Splits and checks a path without its `$`.
    /// # Errors
    /// 40352 and 40353 for an empty path and a dot at an end, 15998 for an empty component, 16410 for a component that
    /// starts with `$`, 16411 for a component with a zero byte.
    pub fn parse(path: &str) -> Result<Self> {
        if path.is_empty() {
            return Err(Failure::new(ErrorCode(40352), "FieldPath cannot be constructed with empty string"));
        }
        if path.ends_with('.') {
            return Err(Failure::new(ErrorCode(40353), "FieldPath must not end with a '.'."));
        }
        let components: Box<[Box<str>]> = path.split('.').map(Into::into).collect();
        if components.len() > COMPONENTS_MAX {
            return Err(Failure::new(ErrorCode::OVERFLOW, "FieldPath is too long"));
        }
        components.iter().try_for_each(|component| check_component(component))?;
        Ok(Self { components })
    }

    /// Splits and checks the path after a variable's name and a dot.
    /// # Errors
    /// As [`Self::parse`]; an empty path counts as one that ends with a dot.
    pub(crate) fn parse_behind_variable(path: &str) -> Result<Self> {
        if path.is_empty() { Self::parse(".") } else { Self::parse(path) }
    }

    /// Checks the length of a path at which a stage reads or writes. Stages check it per document: a pipeline without
    /// documents never fails.
    /// # Errors
    /// 5984700 for more than 199 components.
    pub fn check_place(components: usize) -> Result<()> {
        if components > PLACE_COMPONENTS_MAX {
            return Err(Failure::new(ErrorCode(5_984_700), "Field path exceeds path length limit"));
        }
        Ok(())
    }

    /// The components, outermost first.
    pub fn components(&self) -> &[Box<str>] {
        &self.components
    }

    /// Whether the path has no components and so means the value itself.
    pub(crate) fn is_empty(&self) -> bool {
        self.components.is_empty()
    }

    /// The path as one string.
    pub fn dotted(&self) -> String {
        self.components.join(".")
    }

    /// Follows the path. An array on the way gives the array of its documents' values.
    pub fn follow<'a>(&self, value: ValueRef<'a>) -> Evaluated<'a> {
        if self.components.is_empty() {
            return Evaluated::Ref(value);
        }
        follow(value, &self.components)
    }

    /// As `follow`, for the last components of a path.
    #[inline]
    pub(crate) fn follow_from<'a>(value: ValueRef<'a>, components: &[Box<str>]) -> Evaluated<'a> {
        if components.is_empty() { Evaluated::Ref(value) } else { follow(value, components) }
    }

    /// Work of following the path through a value: it skips over fields.
    #[inline]
    pub(crate) fn steps(&self, value: ValueRef<'_>) -> usize {
        match value {
            _ if self.components.is_empty() => 0,
            ValueRef::Document(document) => 1 + document.len_bytes() / 256,
            ValueRef::Array(array) => 1 + array.as_document().len_bytes() / 16,
            _ => 1,
        }
    }

    /// Follows the path from the top of a document.
    #[inline]
    pub fn of<'a>(&self, document: DocumentRef<'a>) -> Evaluated<'a> {
        match &*self.components {
            // Most paths are a single name.
            [name] => document.get(name).into(),
            _ => self.follow(ValueRef::Document(document)),
        }
    }
}

/// Checks a field name in a path or in a document of expressions.
pub(crate) fn check_component(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Failure::new(ErrorCode(15998), "FieldPath field names may not be empty strings."));
    }
    // The fields of a DBRef are allowed.
    if name.starts_with('$') && !matches!(name, "$db" | "$id" | "$ref") {
        let message = "FieldPath field names may not start with '$'. Consider using $getField or $setField.";
        return Err(Failure::new(ErrorCode(16410), message));
    }
    if name.contains('\0') {
        return Err(Failure::new(ErrorCode(16411), "FieldPath field names may not contain '\\0'."));
    }
    Ok(())
}

fn follow<'a>(value: ValueRef<'a>, path: &[Box<str>]) -> Evaluated<'a> {
    let Some((name, rest)) = path.split_first() else { return Evaluated::Ref(value) };
    match value {
        ValueRef::Document(document) => match document.get(name) {
            Some(field) => follow(field, rest),
            None => Evaluated::Missing,
        },
        ValueRef::Array(array) => {
            let mut found = ArrayBuf::new();
            // Arrays directly inside arrays are skipped: MongoDB collects from documents only.
            for document in array.iter().filter_map(ValueRef::as_document) {
                if let Some(nested) = follow(ValueRef::Document(document), path).get() {
                    found.push(nested);
                }
            }
            Evaluated::Owned(Value::Array(found))
        }
        _ => Evaluated::Missing,
    }
}
