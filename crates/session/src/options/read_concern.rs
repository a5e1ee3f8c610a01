//! The read concern: how settled the data that a client reads must be.

use crate::transactions::is_inside;
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentRef, Timestamp, ValueRef};
use bunko_catalog::StateAsked;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::deployment::Deployment;
use bunko_request::facts::{CommandFacts, ReadConcernUse};
use bunko_request::fields::wrong_type;
use bunko_stages::ConcernUse;

/// A read concern that this server can honour.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadConcern {
    /// The reads must see everything up to this time.
    pub after: Option<Timestamp>,
    /// The past state to read, if any.
    pub state: Option<StateAsked>,
    /// Whether the reads see only what is committed.
    pub is_majority: bool,
    /// Whether the reads see everything that was acknowledged before they began.
    pub is_linearizable: bool,
    /// The term in which this member began a linearizable read as the primary of a set of several; 0 otherwise.
    pub begun_in_term: u64,
    /// Whether the command has a read concern.
    pub is_given: bool,
}

impl ReadConcern {
    /// Parses a read concern. `majority` and `linearizable` see what is committed, which in a set of one member is all
    /// that readers see. `available` adds nothing.
    /// # Errors
    /// `InvalidOptions` for a command that does not allow the level, and for times that do not fit the level;
    /// `NotAReplicaSet` and `IllegalOperation` for features that only a member of a set has; `BadValue`,
    /// `TypeMismatch`, `IDLUnknownField` for malformed values.
    pub fn parse(
        deployment: Deployment,
        command: &CommandFacts,
        concern: DocumentRef<'_>,
        body: DocumentRef<'_>,
    ) -> Result<Self> {
        let mut parsed = Self { is_given: !concern.is_empty(), ..Self::default() };
        check_at_is_a_time(concern)?;
        for element in concern {
            match (element.name, element.value) {
                ("provenance" | "level", ValueRef::Null | ValueRef::Undefined) => {}
                ("provenance", ValueRef::String(provenance)) => check_provenance(provenance)?,
                ("provenance", value) => return Err(wrong_type("readConcern.provenance", value, "string")),
                ("level", ValueRef::String(level)) => {
                    check_known(level)?;
                    check_stages(level, body)?;
                    parsed.is_majority = matches!(level, "majority" | "linearizable");
                    parsed.is_linearizable = level == "linearizable";
                    if is_inside(body) {
                        check_level_inside(level)?;
                    } else {
                        check_level(deployment, command, concern, level)?;
                        if level == "snapshot" && command.read_concern != ReadConcernUse::KeptByCursor {
                            parsed.state.get_or_insert(StateAsked::Present);
                        }
                    }
                }
                ("level", value) => return Err(wrong_type("readConcern.level", value, "string")),
                ("afterClusterTime", ValueRef::Timestamp(time)) if deployment == Deployment::SetMember => {
                    parsed.after = Some(checked_after(concern, time)?);
                }
                ("atClusterTime", ValueRef::Timestamp(time)) if deployment == Deployment::SetMember => {
                    check_at(command, concern, body)?;
                    if command.read_concern != ReadConcernUse::KeptByCursor {
                        parsed.state = Some(StateAsked::At(time));
                    }
                }
                ("afterClusterTime" | "atClusterTime", ValueRef::Timestamp(time)) => {
                    return Err(refuse_cluster_time(command, concern, element.name, time));
                }
                ("afterClusterTime" | "atClusterTime", value) => {
                    return Err(wrong_type(&format!("readConcern.{}", element.name), value, "timestamp"));
                }
                (name, _) => return Err(Failure::unknown_field(format_args!("readConcern.{name}"))),
            }
        }
        Ok(parsed)
    }
}

/// Refuses a null time, on any kind of server.
fn check_at_is_a_time(concern: DocumentRef<'_>) -> Result<()> {
    match (concern.get("level").and_then(ValueRef::as_str), concern.get("atClusterTime")) {
        (Some("snapshot"), Some(ValueRef::Timestamp(time))) if is_null(time) => {
            Err(Failure::new(ErrorCode::INVALID_OPTIONS, "atClusterTime cannot be a null timestamp"))
        }
        _ => Ok(()),
    }
}

/// Whether a time is null, whatever its increment.
fn is_null(time: Timestamp) -> bool {
    time.seconds == 0
}

/// Checks `afterClusterTime`, the latest time that a client has seen.
fn checked_after(concern: DocumentRef<'_>, time: Timestamp) -> Result<Timestamp> {
    let refuse = |message: &str| Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
    if is_null(time) {
        return refuse("afterClusterTime cannot be a null timestamp");
    }
    if concern.get("atClusterTime").is_some() {
        return refuse(
            "Specifying a timestamp for readConcern snapshot in a causally consistent session is not allowed",
        );
    }
    match concern.get("level").and_then(ValueRef::as_str) {
        None | Some("local" | "majority" | "snapshot") => Ok(time),
        Some(_) => refuse("afterClusterTime field can be set only if level is equal to majority, local, or snapshot"),
    }
}

/// Checks `atClusterTime`, which needs the level `snapshot` and which few commands allow.
fn check_at(command: &CommandFacts, concern: DocumentRef<'_>, body: DocumentRef<'_>) -> Result<()> {
    let refuse = |message: &str| Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
    if concern.get("level").and_then(ValueRef::as_str) != Some("snapshot") {
        return refuse("readConcern level 'snapshot' is required when specifying atClusterTime");
    }
    if concern.get("afterClusterTime").is_some() {
        return refuse(
            "Specifying a timestamp for readConcern snapshot in a causally consistent session is not allowed",
        );
    }
    if is_inside(body) || matches!(command.read_concern, ReadConcernUse::AllLevels | ReadConcernUse::KeptByCursor) {
        Ok(())
    } else {
        Err(level_not_supported(command, concern))
    }
}

/// Refuses a level that a stage of the command's pipeline does not allow.
fn check_stages(level: &str, body: DocumentRef<'_>) -> Result<()> {
    let stages = body.get("pipeline").and_then(ValueRef::as_array);
    let names =
        stages.iter().flat_map(|stages| stages.iter()).filter_map(|stage| Some(stage.as_document()?.first()?.name));
    for name in names {
        let stage = bunko_stages::find(name).map_or(ConcernUse::Any, |stage| stage.read_concern);
        let is_refused = match (stage, level) {
            (ConcernUse::OnlyMajority, _) => level != "majority",
            (ConcernUse::Any, _) | (_, "local") => false,
            (ConcernUse::OnlyLocal, _) => true,
            (ConcernUse::NoPastStates, _) => matches!(level, "linearizable" | "snapshot"),
            (ConcernUse::NotLinearizable, _) => level == "linearizable",
        };
        if is_refused {
            let message = format!("The stage {name} cannot run with the read concern level '{level}'");
            return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
        }
    }
    Ok(())
}

/// Checks that the level is one of MongoDB's.
/// # Errors
/// `BadValue` for an unknown level.
fn check_known(level: &str) -> Result<()> {
    match level {
        "local" | "available" | "majority" | "linearizable" | "snapshot" => Ok(()),
        other => Err(Failure::bad_value(format!(
            "Enumeration value '{other}' for field 'readConcern.level' is not a valid value."
        ))),
    }
}

/// Checks the level inside a transaction, where all allowed levels read the transaction's snapshot: its data are
/// committed and durable, or become durable before the transaction commits.
fn check_level_inside(level: &str) -> Result<()> {
    if matches!(level, "local" | "majority" | "snapshot") {
        return Ok(());
    }
    let message = "The readConcern level must be either 'local' (default), 'majority' or 'snapshot' in order to run in a \
                   transaction";
    Err(Failure::new(ErrorCode::INVALID_OPTIONS, message))
}

fn check_level(deployment: Deployment, command: &CommandFacts, concern: DocumentRef<'_>, level: &str) -> Result<()> {
    match level {
        "local" => Ok(()),
        "available" | "majority" | "linearizable" | "snapshot"
            if command.read_concern == ReadConcernUse::KeptByCursor =>
        {
            Ok(())
        }
        "available" | "majority" | "linearizable" | "snapshot" if !command.read_concern.has_levels() => {
            Err(level_not_supported(command, concern))
        }
        "available" | "majority" => Ok(()),
        // No other member can have become the primary meanwhile.
        "linearizable" if deployment == Deployment::SetMember => Ok(()),
        "snapshot" if deployment == Deployment::SetMember && command.read_concern == ReadConcernUse::AllLevels => {
            Ok(())
        }
        "snapshot" if deployment == Deployment::SetMember || command.read_concern == ReadConcernUse::NoSnapshot => {
            Err(level_not_supported(command, concern))
        }
        _ => Err(Failure::new(
            ErrorCode::NOT_A_REPLICA_SET,
            format!("node needs to be a replica set member to use read concern: {level}"),
        )),
    }
}

/// The error for a cluster time on a standalone server.
fn refuse_cluster_time(command: &CommandFacts, concern: DocumentRef<'_>, name: &str, time: Timestamp) -> Failure {
    let is_null = time == Timestamp { seconds: 0, increment: 0 };
    if name == "afterClusterTime" && is_null {
        return Failure::new(ErrorCode::INVALID_OPTIONS, "afterClusterTime cannot be a null timestamp");
    }
    if name == "atClusterTime" && concern.get("level").and_then(ValueRef::as_str) != Some("snapshot") {
        let message = "readConcern level 'snapshot' is required when specifying atClusterTime";
        return Failure::new(ErrorCode::INVALID_OPTIONS, message);
    }
    if name == "atClusterTime" && !command.read_concern.has_levels() {
        return level_not_supported(command, concern);
    }
    Failure::new(
        ErrorCode::ILLEGAL_OPERATION,
        format!("Cannot specify '{name}' readConcern without replication enabled"),
    )
}

fn level_not_supported(command: &CommandFacts, concern: DocumentRef<'_>) -> Failure {
    Failure::new(
        ErrorCode::INVALID_OPTIONS,
        format!(
            "Command {} does not support {{ readConcern: {} }} :: caused by :: read concern not supported",
            command.name,
            ValueText(concern.into())
        ),
    )
}

/// Checks `provenance`, which servers add to concerns that they forward.
fn check_provenance(provenance: &str) -> Result<()> {
    match provenance {
        "clientSupplied" | "implicitDefault" | "customDefault" | "getLastErrorDefaults" | "internalWriteDefault" => {
            Ok(())
        }
        _ => Err(Failure::bad_value(format!(
            "Enumeration value '{provenance}' for field 'readConcern.provenance' is not a valid value."
        ))),
    }
}
