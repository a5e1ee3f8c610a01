//! The values at a path of a document, as `distinct` counts them.

use bunko_bson::{DocumentRef, ValueRef};
use bunko_errors::Result;
use bunko_operation::OperationContext;

/// Shows the values at `path` in a document, as `distinct` counts them.
/// # Errors
/// Errors of the visitor and of the operation.
pub(crate) fn visit_values(
    operation: &OperationContext,
    document: DocumentRef<'_>,
    path: &str,
    visit: &mut dyn FnMut(ValueRef<'_>) -> Result<()>,
) -> Result<()> {
    let (name, rest) = split(path);
    match (document.get(name), rest) {
        (None, _) => Ok(()),
        (Some(ValueRef::Array(array)), None) => array.iter().try_for_each(visit),
        (Some(value), None) => visit(value),
        (Some(ValueRef::Document(document)), Some(rest)) => visit_values(operation, document, rest, visit),
        // A numeric component is an array position: an array is a document with its indexes as names.
        (Some(ValueRef::Array(array)), Some(rest)) if split(rest).0.bytes().all(|byte| byte.is_ascii_digit()) => {
            visit_values(operation, array.as_document(), rest, visit)
        }
        (Some(ValueRef::Array(array)), Some(rest)) => array.iter().try_for_each(|element| {
            operation.work(1)?;
            element.as_document().map_or(Ok(()), |element| visit_values(operation, element, rest, visit))
        }),
        (Some(_), Some(_)) => Ok(()),
    }
}

fn split(path: &str) -> (&str, Option<&str>) {
    path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)))
}
