//! `commitQuorum` of an index build: how many members must be ready before the index is committed. With one member,
//! that is when its own build is ready, so any quorum that can be met is met then.
//! Source: MongoDB manual 8.2, "createIndexes", field `commitQuorum`.

use bunko_bson::{ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_replica_set::{ReplicaSet, Tagged};

/// Maximum number of members of a set. Source: MongoDB manual, "Limits and Thresholds".
const MEMBERS_MAX: i64 = 50;
/// Members of this set.
const MEMBERS: i64 = 1;

/// Checks the quorum of a command.
/// # Errors
/// `BadValue` on a server that is not a member of a set; `TypeMismatch`; `FailedToParse` for an invalid quorum;
/// `UnknownReplWriteConcern` and `UnsatisfiableWriteConcern` for a mode that the set does not have, and for one that
/// its members cannot meet; `UnsatisfiableCommitQuorum` if the set has fewer members.
pub(crate) fn check(set: Option<&ReplicaSet>, quorum: ValueRef<'_>) -> Result<()> {
    let Some(set) = set else { return Err(Failure::bad_value("Standalones can't specify commitQuorum")) };
    check_type(quorum)?;
    if let Some(mode) = quorum.as_str() {
        return match mode {
            "majority" | "votingMembers" => Ok(()),
            "" => Err(Failure::failed_to_parse("commitQuorum can't be an empty string")),
            _ => set.member().check_tagged(&Tagged::Mode(mode.to_owned())),
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
/// `TypeMismatch` if it is neither a number nor the name of a mode.
pub(crate) fn check_type(quorum: ValueRef<'_>) -> Result<()> {
    if matches!(quorum, ValueRef::String(_)) || quorum.is_number() {
        return Ok(());
    }
    let kind = quorum.kind().alias();
    Err(Failure::type_mismatch(format!(
        "commitQuorum had the wrong type. Expected {{ string || number }}, found {kind}"
    )))
}
