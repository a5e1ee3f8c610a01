//! `$sortByCount`: groups by an expression, largest group first.

use super::{Definition, Stages, group, sort};
use crate::Environment;
use bunko_bson::{DocumentBuf, StringUse, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

pub(super) const DEFINITION: Definition =
    Definition { facts: &bunko_stages::SORT_BY_COUNT, strings: StringUse::Collated, parse };

/// Expands to `$group` and `$sort`.
fn parse(value: ValueRef<'_>, environment: &Environment) -> Result<Stages> {
    let refusal = |code, message| Failure::new(ErrorCode(code), message);
    match value {
        ValueRef::Document(document) => {
            if !document.first().is_some_and(|first| first.name.starts_with('$')) {
                return Err(refusal(
                    40147,
                    "the sortByCount field must be defined as a $-prefixed path or an expression inside an object",
                ));
            }
        }
        ValueRef::String(path) if path.starts_with('$') => {}
        ValueRef::String(_) => {
            return Err(refusal(
                40148,
                "the sortByCount field must be defined as a $-prefixed path or an expression inside an object",
            ));
        }
        _ => return Err(refusal(40149, "the sortByCount field must be specified as a string or as an object")),
    }
    let one = DocumentBuf::new().with("$sum", 1_i32);
    let grouping = DocumentBuf::new().with("_id", value).with("count", &one);
    let order = DocumentBuf::new().with("count", -1_i32);
    let mut stages = (group::DEFINITION.parse)(ValueRef::from(&grouping), environment)?;
    stages.extend((sort::DEFINITION.parse)(ValueRef::from(&order), environment)?);
    Ok(stages)
}
