//! Fields that MongoDB's servers send to each other, and that its parsers therefore know.

use crate::facts::CommandFacts;
use bunko_bson::{DocumentRef, ValueRef};
use bunko_errors::{Failure, Result};

/// The fields that every command has.
/// Source: MongoDB 8.2, tests of commands between routers and shards; drivers specifications.
pub const OF_ALL_COMMANDS: &[&str] = &[
    "clientOperationKey",
    "coordinator",
    "databaseVersion",
    "shardVersion",
    "startOrContinueTransaction",
    "txnRetryCounter",
    "usesDefaultMaxTimeMS",
];

const FROM_ROUTER: &str = "fromRouter";
const NEEDS_MERGE: &str = "needsMerge";

/// Whether the command has an internal field of this name. Refuses the field, unless its value shows that no other
/// server sent the command.
/// # Errors
/// `CommandNotSupported`; `FailedToParse` for `needsMerge` without `fromRouter`.
pub fn check(command: &CommandFacts, name: &str, value: ValueRef<'_>, body: DocumentRef<'_>) -> Result<bool> {
    if !OF_ALL_COMMANDS.contains(&name) && !command.internal_fields.contains(&name) {
        return Ok(false);
    }
    if name == NEEDS_MERGE && body.get(FROM_ROUTER).is_none_or(ValueRef::is_nullish) {
        return Err(Failure::failed_to_parse(format!("Cannot specify '{NEEDS_MERGE}' without '{FROM_ROUTER}'")));
    }
    match value {
        ValueRef::Boolean(false) if matches!(name, FROM_ROUTER | NEEDS_MERGE) => Ok(true),
        _ => Err(Failure::not_supported_yet(&format!("{}.{name}", command.name))),
    }
}
