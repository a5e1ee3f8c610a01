//! `$count`: one document with the number of input documents; no document if there are none.

use super::{Definition, Stages, group, reshaped};
use crate::Environment;
use bunko_bson::{DocumentBuf, StringUse, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

pub(super) const DEFINITION: Definition =
    Definition { facts: &bunko_stages::COUNT, strings: StringUse::AsBytes, parse };

/// Expands to `$group` and `$project`.
fn parse(value: ValueRef<'_>, environment: &Environment) -> Result<Stages> {
    let refusal = |code, message| Failure::new(ErrorCode(code), message);
    let field = match value {
        ValueRef::String("") => return Err(refusal(40157, "the count field must be a non-empty string")),
        ValueRef::String(field) => field,
        _ => return Err(refusal(40156, "the count field must be a non-empty string")),
    };
    if field.starts_with('$') {
        return Err(refusal(40158, "the count field cannot be a $-prefixed path"));
    }
    if field.contains('\0') {
        return Err(refusal(40159, "the count field cannot contain a null byte"));
    }
    if field.contains('.') {
        return Err(refusal(40160, "the count field cannot contain '.'"));
    }
    if field == "_id" {
        return Err(refusal(9_039_800, "the count field cannot be '_id'"));
    }
    let one = DocumentBuf::new().with("$sum", 1_i32);
    let grouping = DocumentBuf::new().with("_id", ValueRef::Null).with(field, &one);
    let shape = DocumentBuf::new().with("_id", false).with(field, true);
    let mut stages = (group::DEFINITION.parse)(ValueRef::from(&grouping), environment)?;
    stages.extend((reshaped::PROJECT.parse)(ValueRef::from(&shape), environment)?);
    Ok(stages)
}
