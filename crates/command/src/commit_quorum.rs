//! `commitQuorum` of an index build: how many members have to be ready before the index counts. Where there is one member,
//! it is ready when its own build is, so whatever can be met at all is met then.
//! Source: MongoDB manual 8.2, "createIndexes", field `commitQuorum`.

use crate::replica_set::Deployment;
use bunko_bson::{ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};

/// Members that a set may have. Source: MongoDB manual, "Limits and Thresholds".
const MEMBERS_MAX: i64 = 50;
/// Those that there are.
const MEMBERS: i64 = 1;

/// Judges what a command gives as its quorum.
/// # Errors
/// `BadValue` on a server that is no member of a set; `TypeMismatch`; `FailedToParse` for what is no quorum;
/// `UnknownReplWriteConcern` for a mode that the set does not have; `UnsatisfiableCommitQuorum` where the set has fewer
/// members.
pub(crate) fn check(deployment: Deployment, quorum: ValueRef<'_>) -> Result<()> {
    if deployment == Deployment::Standalone {
        return Err(Failure::bad_value("Standalones can't specify commitQuorum"));
    }
    check_type(quorum)?;
    if let Some(mode) = quorum.as_str() {
        return match mode {
            "majority" | "votingMembers" => Ok(()),
            "" => Err(Failure::failed_to_parse("commitQuorum can't be an empty string")),
            _ => {
                let message = format!("No write concern mode named '{mode}' found in replica set configuration");
                Err(Failure::new(ErrorCode::UNKNOWN_REPL_WRITE_CONCERN, message))
            }
        };
    }
    match number::as_f64(quorum).map(|count| count as i64) {
        Some(0..=MEMBERS) => Ok(()),
        Some(0..=MEMBERS_MAX) => {
            let message = "Commit quorum cannot be satisfied with the current replica set configuration";
            Err(Failure::new(ErrorCode::UNSATISFIABLE_COMMIT_QUORUM, message))
        }
        _ => {
            let message = format!("commitQuorum has to be a non-negative value no greater than {MEMBERS_MAX}");
            Err(Failure::failed_to_parse(&message))
        }
    }
}

/// # Errors
/// `TypeMismatch` for what is neither a number nor a mode's name.
pub(crate) fn check_type(quorum: ValueRef<'_>) -> Result<()> {
    if matches!(quorum, ValueRef::String(_)) || quorum.is_number() {
        return Ok(());
    }
    let kind = quorum.kind().alias();
    Err(Failure::type_mismatch(format!(
        "commitQuorum had the wrong type. Expected {{ string || number }}, found {kind}"
    )))
}
