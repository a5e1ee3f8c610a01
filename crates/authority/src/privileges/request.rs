//! Reads options and names in requests for the checks of privileges, as strictly as anything that malformed input could
//! be taken for.

use bunko_bson::{ArrayRef, DocumentRef, ValueRef, number};
use bunko_request::Request;

/// Whether an option may be on. Any value but a boolean, null or zero counts as on.
pub(super) fn is_on(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Boolean(is_on) => is_on,
        other => !other.is_nullish() && number::as_i64_exact(other) != Some(0),
    }
}

/// Whether an option of a document may be on, in any of its occurrences.
pub fn has_on(document: DocumentRef<'_>, name: &str) -> bool {
    // Most documents lack the option, which this finds without decoding a value.
    document.get(name).is_some() && document.iter().any(|field| field.name == name && is_on(field.value))
}

/// The documents of an array field, from the body or a document sequence.
pub fn entries<'r>(request: &Request<'r>, name: &str) -> Vec<DocumentRef<'r>> {
    let in_body = request.body.iter().filter(|field| field.name == name).filter_map(|field| field.value.as_array());
    let in_body = in_body.flat_map(ArrayRef::iter).filter_map(ValueRef::as_document);
    let sequence = request.sequence(name).map(|sequence| sequence.documents.clone());
    in_body.chain(sequence.into_iter().flatten()).collect()
}

/// Database and collection of a full name. A name without a dot is a database with no collection.
pub(super) fn split(namespace: &str) -> (&str, &str) {
    namespace.split_once('.').unwrap_or((namespace, ""))
}

/// The command's first value as text; empty if it is not a string.
pub(super) fn argument<'r>(request: &Request<'r>) -> &'r str {
    request.argument().as_str().unwrap_or_default()
}
