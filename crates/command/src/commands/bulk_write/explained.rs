//! The `bulkWrite` that `explain` is given: its only operation, and the collection that it is over.

use super::operation::{Action, Operation};
use super::target::{NamespaceInfo, parse_target};
use crate::document_list::parse_batch_size;
use crate::let_variables::Let;
use crate::retries;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::fields::Fields;

/// A `bulkWrite` with one operation.
pub(in crate::commands) struct OnlyOperation<'a> {
    pub target: NamespaceInfo,
    pub action: Action<'a>,
    pub variables: Let<'a>,
}

impl<'a> OnlyOperation<'a> {
    /// # Errors
    /// `InvalidLength` unless there is exactly one operation; errors of the operation and of `nsInfo`.
    pub fn parse(fields: &Fields<'a>) -> Result<Self> {
        let [operation] = fields.documents("ops")?[..] else {
            return Err(Failure::new(ErrorCode::INVALID_LENGTH, "explained write batches must be of size 1"));
        };
        let mut targets: Vec<_> = fields.documents("nsInfo")?.into_iter().map(parse_target).collect::<Result<_>>()?;
        let operation = Operation::parse(operation, targets.len())?;
        retries::parse(fields, 1)?;
        parse_batch_size(fields)?;
        let target = targets.swap_remove(operation.namespace);
        Ok(Self { target, action: operation.action, variables: Let::parse(fields)? })
    }
}
