//! The rules for `_id` in updates.

use bunko_bson::{DocumentBuf, DocumentRef, Element, ValueRef, stored_id};
use bunko_errors::{ErrorCode, Failure, Result};

pub(crate) const ID: &str = "_id";

/// The failure of an update that would change `_id` through `path`.
pub(crate) fn modified_by(path: impl std::fmt::Display) -> Failure {
    let message = format!("Performing an update on the path '{path}' would modify the immutable field '{ID}'");
    Failure::new(ErrorCode::IMMUTABLE_FIELD, message)
}

/// Moves `_id`, if there is one, to the front.
pub(crate) fn moved_to_front(document: DocumentBuf) -> DocumentBuf {
    let borrowed = document.as_ref();
    let leads = borrowed.first().is_none_or(|first| first.name == ID);
    let Some(id) = borrowed.get(ID).filter(|_| !leads) else { return document };
    let mut moved = DocumentBuf::new().with(ID, id);
    append_all_but_id(&mut moved, borrowed);
    moved
}

pub(crate) fn append_all_but_id(target: &mut DocumentBuf, source: DocumentRef<'_>) {
    for Element { name, value } in source {
        if name != ID {
            target.append(name, value);
        }
    }
}

/// Checks the `_id` of a document before it is stored, if it has one.
/// # Errors
/// `InvalidIdField` for a type that cannot be an `_id`; `DollarPrefixedFieldName` for a `$` name inside.
pub(crate) fn check(document: DocumentRef<'_>) -> Result<()> {
    match document.get(ID) {
        Some(value @ (ValueRef::Array(_) | ValueRef::Regex { .. } | ValueRef::Undefined)) => {
            let message = format!("The '_id' value cannot be of type {}", value.kind().alias());
            Err(Failure::new(ErrorCode::INVALID_ID_FIELD, message))
        }
        Some(ValueRef::Document(id)) => match stored_id::name_not_allowed(id) {
            Some(name) => {
                let message =
                    format!("_id fields may not contain '$'-prefixed fields: {name} is not valid for storage.");
                Err(Failure::new(ErrorCode::DOLLAR_PREFIXED_FIELD_NAME, message))
            }
            None => Ok(()),
        },
        _ => Ok(()),
    }
}
