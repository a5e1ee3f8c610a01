//! `$unset`: removes fields.

use super::Change;
use crate::{ParseScope, Projection};
use bunko_bson::ValueRef;
use bunko_errors::{ErrorCode, Failure, Result};
use std::sync::Arc;

pub(super) fn parse(_: &'static str, value: ValueRef<'_>, _: &ParseScope) -> Result<Change> {
    let refusal = |code, message| Failure::new(ErrorCode(code), message);
    let paths = match value {
        ValueRef::String(path) => vec![path],
        ValueRef::Array(paths) => {
            let given = paths.iter().map(ValueRef::as_str).collect::<Option<Vec<_>>>();
            given.ok_or_else(|| {
                refusal(31120, "$unset specification must be a string or an array containing only string values")
            })?
        }
        _ => return Err(refusal(31002, "$unset specification must be a string or an array")),
    };
    if paths.is_empty() {
        return Err(refusal(31119, "$unset specification must be a string or an array with at least one field"));
    }
    if paths.iter().any(|path| path.contains('\0')) {
        return Err(refusal(9_527_900, "$unset specification must not contain paths with a zero byte"));
    }
    let projection = Projection::excluding(paths);
    let projection = projection.map_err(|failure| failure.with_prefix("Invalid $unset :: caused by :: "))?;
    Ok(Change::Fields(Arc::new(projection)))
}
