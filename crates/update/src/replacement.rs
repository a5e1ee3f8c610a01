//! Updates that replace the whole document.

use crate::context::ApplyContext;
use crate::immutable_id::{self, ID};
use crate::nesting;
use bunko_bson::text::ElementText;
use bunko_bson::{DocumentBuf, DocumentRef, Element, Timestamp, ValueRef, order};
use bunko_errors::{ErrorCode, Failure, Result};

/// The document that replaces the old one.
#[derive(Debug)]
pub(crate) struct Replacement(DocumentBuf);

impl Replacement {
    /// # Errors
    /// `DollarPrefixedFieldName` for a top-level name that starts with `$`; `BadValue` for a second `_id`; `Overflow`
    /// for a document nested too deep.
    pub fn parse(document: DocumentRef<'_>) -> Result<Self> {
        if let Some(element) = document.iter().find(|element| element.name.starts_with('$')) {
            return Err(dollar_prefixed(element.name, element.name));
        }
        if document.iter().filter(|element| element.name == ID).nth(1).is_some() {
            return Err(Failure::bad_value("Can't have multiple _id fields in one document"));
        }
        nesting::check(document.into(), 0)?;
        Ok(Self(document.to_owned()))
    }

    /// Whether the replacement has an `_id`.
    pub fn has_id(&self) -> bool {
        self.0.as_ref().get(ID).is_some()
    }

    /// The new document, with zero timestamps at the top level filled.
    /// # Errors
    /// As [`replaced`].
    pub fn apply(&self, original: DocumentRef<'_>, context: &ApplyContext<'_>) -> Result<DocumentBuf> {
        let replacement = self.0.as_ref();
        if !replacement.iter().any(|element| is_zero_timestamp(element.value)) {
            return replaced(original, replacement);
        }
        let mut filled = DocumentBuf::new();
        for Element { name, value } in replacement {
            let is_empty = name != ID && is_zero_timestamp(value);
            filled.append(name, if is_empty { context.timestamp.into() } else { value });
        }
        replaced(original, filled.as_ref())
    }
}

/// The replacement of `original`: the new document with `_id` in front, its own or the original's.
/// # Errors
/// As [`immutable_id::check`]; `ImmutableField` if the new document has another `_id`.
pub(crate) fn replaced(original: DocumentRef<'_>, new: DocumentRef<'_>) -> Result<DocumentBuf> {
    immutable_id::check(new)?;
    let mut result = DocumentBuf::new();
    match (original.get(ID), new.get(ID)) {
        (Some(old), Some(new)) if !order::equal(old, new) => {
            let message = format!(
                "After applying the update, the (immutable) field '{ID}' was found to have been altered to {}",
                ElementText(Element { name: ID, value: new })
            );
            return Err(Failure::new(ErrorCode::IMMUTABLE_FIELD, message));
        }
        // An equal `_id` of another numeric type replaces the old one.
        (_, Some(id)) | (Some(id), None) => {
            result.append(ID, id);
        }
        (None, None) => {}
    }
    immutable_id::append_all_but_id(&mut result, new);
    Ok(result)
}

fn is_zero_timestamp(value: ValueRef<'_>) -> bool {
    matches!(value, ValueRef::Timestamp(Timestamp { seconds: 0, increment: 0 }))
}

/// The failure of an update that would create a top-level field whose name starts with `$`.
pub(crate) fn dollar_prefixed(name: &str, path: &str) -> Failure {
    let message = format!(
        "The dollar ($) prefixed field '{name}' in '{path}' is not allowed in the context of an update's replacement document. Consider using an aggregation pipeline with $replaceWith."
    );
    Failure::new(ErrorCode::DOLLAR_PREFIXED_FIELD_NAME, message)
}
