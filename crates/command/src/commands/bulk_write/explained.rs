//! The `bulkWrite` that `explain` is given: its only operation, and the collection that it is over.

use super::operation::{Action, Operation};
use super::{Target, target};
use bunko_bson::{DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::fields::Fields;
use bunko_request::statement::required;

/// The only operation of a `bulkWrite`, and its collection.
/// # Errors
/// `InvalidLength` unless there is exactly one operation; errors of the operation and of `nsInfo`.
pub(in crate::commands) fn only_operation<'a>(fields: &Fields<'a>) -> Result<(Target, Action<'a>)> {
    let operations = documents(fields, "ops")?;
    let [operation] = operations[..] else {
        return Err(Failure::new(ErrorCode::INVALID_LENGTH, "explained write batches must be of size 1"));
    };
    let mut targets: Vec<_> = documents(fields, "nsInfo")?.into_iter().map(target).collect::<Result<_>>()?;
    let operation = Operation::parse(operation, targets.len())?;
    Ok((targets.swap_remove(operation.namespace), operation.action))
}

fn documents<'a>(fields: &Fields<'a>, name: &str) -> Result<Vec<DocumentRef<'a>>> {
    let value = required(fields, name)?;
    let array = value.as_array().ok_or_else(|| fields.mismatch(name, value, "type 'array'"))?;
    let document = |(index, value): (usize, ValueRef<'a>)| {
        value.as_document().ok_or_else(|| fields.mismatch(&format!("{name}.{index}"), value, "type 'object'"))
    };
    array.iter().enumerate().map(document).collect()
}
