//! How settled what a client reads must be.

use crate::dispatch::Command;
use crate::fields::wrong_type;
use crate::replica_set::Deployment;
use crate::transactions::is_inside;
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentRef, Timestamp, ValueRef};
use bunko_catalog::StateAsked;
use bunko_errors::{ErrorCode, Failure, Result};

/// Commands for which there is another level than `local`.
const READERS: [&str; 5] = ["find", "aggregate", "count", "distinct", "explain"];

/// Commands that read past states outside transactions.
/// Source: MongoDB manual 8.2, "Read Concern \"snapshot\"", "Read Concern and Operations".
const OF_PAST_STATES: [&str; 3] = ["find", "aggregate", "distinct"];

/// The command whose read concern is heard and says nothing: a cursor keeps the one that it was opened with.
const KEEPS_ITS_OWN: &str = "getMore";

/// Stages that tell what is in the process, at no other level than `local`.
const ONLY_LOCAL: [&str; 3] = ["$currentOp", "$listLocalSessions", "$planCacheStats"];
/// The stage that tells what is durable, at no other level than `majority`.
const ONLY_MAJORITY: &str = "$changeStream";
/// Stages that read the catalog, which has no older states.
const NO_SNAPSHOT: [&str; 1] = ["$listClusterCatalog"];
/// Stages that write, which no read can be linearized with.
const WRITING: [&str; 2] = ["$merge", "$out"];

/// A read concern that this server can honour.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadConcern {
    /// What happened up to then is to be seen.
    pub after: Option<Timestamp>,
    /// Which past state is to be read, where it is one.
    pub state: Option<StateAsked>,
    /// Whether the command says anything.
    pub is_given: bool,
}

impl ReadConcern {
    /// Judges a read concern. A single node's reads are of what is in its kernel; `majority`, `available` and
    /// `linearizable` say no more here.
    /// # Errors
    /// `InvalidOptions` for a command that reads at no other level, and for times that do not go with a level;
    /// `NotAReplicaSet` and `IllegalOperation` for what only a member of a set has; `BadValue`, `TypeMismatch`,
    /// `IDLUnknownField` for what is malformed; `CommandNotSupported` for `snapshot`.
    pub(crate) fn parse(
        deployment: Deployment,
        command: &Command,
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
                    if is_inside(body) {
                        check_level_inside(level)?;
                    } else {
                        check_level(deployment, command, concern, level)?;
                        if level == "snapshot" && command.name != KEEPS_ITS_OWN {
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
                    if command.name != KEEPS_ITS_OWN {
                        parsed.state = Some(StateAsked::At(time));
                    }
                }
                ("afterClusterTime" | "atClusterTime", ValueRef::Timestamp(time)) => {
                    return Err(refuse_cluster_time(command, concern, element.name, time));
                }
                ("afterClusterTime" | "atClusterTime", value) => {
                    return Err(wrong_type(&format!("readConcern.{}", element.name), value, "timestamp"));
                }
                (name, _) => {
                    return Err(Failure::new(
                        ErrorCode::IDL_UNKNOWN_FIELD,
                        format!("BSON field 'readConcern.{name}' is an unknown field."),
                    ));
                }
            }
        }
        Ok(parsed)
    }
}

/// Refuses a moment that is none, which is wrong whatever the server is.
fn check_at_is_a_time(concern: DocumentRef<'_>) -> Result<()> {
    match (concern.get("level").and_then(ValueRef::as_str), concern.get("atClusterTime")) {
        (Some("snapshot"), Some(ValueRef::Timestamp(time))) if is_null(time) => {
            Err(Failure::new(ErrorCode::INVALID_OPTIONS, "atClusterTime cannot be a null timestamp"))
        }
        _ => Ok(()),
    }
}

/// Whether a time means none, whatever its increment.
fn is_null(time: Timestamp) -> bool {
    time.seconds == 0
}

/// The time that a client has seen something of.
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

/// Refuses a time that goes with no other level than `snapshot`, and is read by few commands.
fn check_at(command: &Command, concern: DocumentRef<'_>, body: DocumentRef<'_>) -> Result<()> {
    let refuse = |message: &str| Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
    if concern.get("level").and_then(ValueRef::as_str) != Some("snapshot") {
        return refuse("readConcern level 'snapshot' is required when specifying atClusterTime");
    }
    if concern.get("afterClusterTime").is_some() {
        return refuse(
            "Specifying a timestamp for readConcern snapshot in a causally consistent session is not allowed",
        );
    }
    if is_inside(body) || OF_PAST_STATES.contains(&command.name) || command.name == KEEPS_ITS_OWN {
        Ok(())
    } else {
        Err(level_not_supported(command, concern))
    }
}

/// Refuses a level at which a stage of the command's pipeline does not read, or writes.
fn check_stages(level: &str, body: DocumentRef<'_>) -> Result<()> {
    let stages = body.get("pipeline").and_then(ValueRef::as_array);
    let names =
        stages.iter().flat_map(|stages| stages.iter()).filter_map(|stage| Some(stage.as_document()?.first()?.name));
    for name in names {
        let is_refused = match level {
            _ if name == ONLY_MAJORITY => level != "majority",
            "local" => false,
            "linearizable" => NO_SNAPSHOT.contains(&name) || ONLY_LOCAL.contains(&name) || WRITING.contains(&name),
            "snapshot" => NO_SNAPSHOT.contains(&name) || ONLY_LOCAL.contains(&name),
            _ => ONLY_LOCAL.contains(&name),
        };
        if is_refused {
            let message = format!("The stage {name} cannot run with the read concern level '{level}'");
            return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
        }
    }
    Ok(())
}

/// # Errors
/// `BadValue` for what is no level.
fn check_known(level: &str) -> Result<()> {
    match level {
        "local" | "available" | "majority" | "linearizable" | "snapshot" => Ok(()),
        other => Err(Failure::bad_value(format!(
            "Enumeration value '{other}' for field 'readConcern.level' is not a valid value."
        ))),
    }
}

/// Inside a transaction all read its snapshot, which has what is committed and durable, or will be before it is.
fn check_level_inside(level: &str) -> Result<()> {
    if matches!(level, "local" | "majority" | "snapshot") {
        return Ok(());
    }
    let message = "The readConcern level must be either 'local' (default), 'majority' or 'snapshot' in order to run in a \
                   transaction";
    Err(Failure::new(ErrorCode::INVALID_OPTIONS, message))
}

fn check_level(deployment: Deployment, command: &Command, concern: DocumentRef<'_>, level: &str) -> Result<()> {
    match level {
        "local" => Ok(()),
        "available" | "majority" | "linearizable" | "snapshot" if command.name == KEEPS_ITS_OWN => Ok(()),
        "available" | "majority" | "linearizable" | "snapshot" if !READERS.contains(&command.name) => {
            Err(level_not_supported(command, concern))
        }
        "available" | "majority" => Ok(()),
        // No other member can have become the primary meanwhile.
        "linearizable" if deployment == Deployment::SetMember => Ok(()),
        "snapshot" if deployment == Deployment::SetMember && OF_PAST_STATES.contains(&command.name) => Ok(()),
        "snapshot" if deployment == Deployment::SetMember || command.name == "count" => {
            Err(level_not_supported(command, concern))
        }
        _ => Err(Failure::new(
            ErrorCode::NOT_A_REPLICA_SET,
            format!("node needs to be a replica set member to use read concern: {level}"),
        )),
    }
}

/// A time of a cluster, where there is none.
fn refuse_cluster_time(command: &Command, concern: DocumentRef<'_>, name: &str, time: Timestamp) -> Failure {
    let is_null = time == Timestamp { seconds: 0, increment: 0 };
    if name == "afterClusterTime" && is_null {
        return Failure::new(ErrorCode::INVALID_OPTIONS, "afterClusterTime cannot be a null timestamp");
    }
    if name == "atClusterTime" && concern.get("level").and_then(ValueRef::as_str) != Some("snapshot") {
        let message = "readConcern level 'snapshot' is required when specifying atClusterTime";
        return Failure::new(ErrorCode::INVALID_OPTIONS, message);
    }
    if name == "atClusterTime" && !READERS.contains(&command.name) {
        return level_not_supported(command, concern);
    }
    Failure::new(
        ErrorCode::ILLEGAL_OPERATION,
        format!("Cannot specify '{name}' readConcern without replication enabled"),
    )
}

fn level_not_supported(command: &Command, concern: DocumentRef<'_>) -> Failure {
    Failure::new(
        ErrorCode::INVALID_OPTIONS,
        format!(
            "Command {} does not support {{ readConcern: {} }} :: caused by :: read concern not supported",
            command.name,
            ValueText(concern.into())
        ),
    )
}

/// Servers add it to what they pass on.
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
