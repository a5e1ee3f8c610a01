//! Fields that MongoDB's servers send to each other, and that its parsers therefore know.

use crate::dispatch::Command;
use bunko_bson::{DocumentRef, ValueRef};
use bunko_errors::{Failure, Result};

/// A field with the commands that have it; none means all commands.
type Internal = (&'static str, &'static [&'static str]);

/// The fields, by name.
/// Source: MongoDB 8.2, tests of commands between routers and shards; drivers specifications.
const INTERNAL: &[Internal] = &[
    ("$_externalDataSources", &["aggregate"]),
    ("$_generateV2ResumeTokens", &["aggregate"]),
    ("$_isClusterQueryWithoutShardKeyCmd", &["aggregate", "findAndModify", "delete", "update", "insert", "bulkWrite"]),
    ("$_passthroughToShard", &["aggregate"]),
    ("$_requestReshardingResumeToken", &["aggregate"]),
    ("clientOperationKey", &[]),
    ("coordinator", &[]),
    ("databaseVersion", &[]),
    ("exchange", &["aggregate"]),
    ("fromMongos", &["aggregate"]),
    (FROM_ROUTER, &["aggregate"]),
    ("includeQueryStatsMetrics", &["aggregate", "count", "distinct", "find", "getMore"]),
    ("isMapReduceCommand", &["aggregate"]),
    ("isTimeseriesNamespace", &["delete", "findAndModify", "insert", "update"]),
    ("legacyRuntimeConstants", &["aggregate", "delete", "find", "findAndModify", "update"]),
    ("mergeByPBRT", &["aggregate"]),
    (NEEDS_MERGE, &["aggregate"]),
    ("runtimeConstants", &["aggregate", "delete", "find", "findAndModify", "update"]),
    ("sampleId", &["count", "delete", "distinct", "find", "findAndModify", "update"]),
    ("shardVersion", &[]),
    ("startOrContinueTransaction", &[]),
    ("txnRetryCounter", &[]),
    ("usesDefaultMaxTimeMS", &[]),
];

const FROM_ROUTER: &str = "fromRouter";
const NEEDS_MERGE: &str = "needsMerge";

/// Whether the command has an internal field of this name. Refuses the field, unless its value says that no other
/// server sent the command.
/// # Errors
/// `CommandNotSupported`; `FailedToParse` for `needsMerge` without `fromRouter`.
pub(crate) fn check(command: &Command, name: &str, value: ValueRef<'_>, body: DocumentRef<'_>) -> Result<bool> {
    let is_known = INTERNAL
        .iter()
        .any(|(internal, commands)| *internal == name && (commands.is_empty() || commands.contains(&command.name)));
    if !is_known {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::COMMANDS;

    #[test]
    fn each_field_is_of_commands_that_exist_and_do_not_take_it() {
        let names: Vec<_> = INTERNAL.iter().map(|(name, _)| *name).collect();
        assert!(names.is_sorted(), "{names:?}");
        for (name, commands) in INTERNAL {
            for command in *commands {
                let known = COMMANDS.iter().find(|known| known.name == *command).expect(command);
                assert!(known.fields.iter().all(|field| field.name != *name), "{command}.{name}");
                assert!(check(known, name, ValueRef::Boolean(true), DocumentRef::EMPTY).is_err(), "{command}.{name}");
            }
        }
    }
}
