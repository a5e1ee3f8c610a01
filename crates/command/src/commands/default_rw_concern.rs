//! `getDefaultRWConcern` and `setDefaultRWConcern`: the concerns of commands that give none. Only a replica set has
//! them.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::service::Service;
use crate::stored_settings;
use bunko_access::Action;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, Writer, number};
use bunko_catalog::stored_document::Stamps;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_replica_set::Tagged;
use bunko_request::deployment::Deployment;
use bunko_request::facts::{Changes, CommandFacts, Databases, WriteConcernUse};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::{Fields, truth, wrong_type};
use bunko_request::write_concern::{Replicas, WriteConcern};
use bunko_session::Halt;
use bunko_settings::default_concerns::{COLLECTION, DATABASE, Set};

pub(super) const GET: Command = Command {
    facts: CommandFacts {
        name: "getDefaultRWConcern",
        fields: &[field("inMemory", Kind::Boolean)],
        databases: Databases::Admin,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCluster(Action::GetDefaultRwConcern),
    run: get,
    ..Command::PLAIN
};

pub(super) const SET: Command = Command {
    facts: CommandFacts {
        name: "setDefaultRWConcern",
        fields: &[field("defaultReadConcern", Kind::Object), field("defaultWriteConcern", Kind::Object)],
        databases: Databases::Admin,
        changes: Changes::Other,
        write_concern: WriteConcernUse::Taken,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCluster(Action::SetDefaultRwConcern),
    run: set,
    ..Command::PLAIN
};

fn get(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let in_memory = parse_in_memory(invocation)?;
    refuse_without_set(invocation)?;
    write_defaults(invocation, reply);
    if in_memory {
        reply.append("inMemory", true);
    }
    Ok(())
}

fn set(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let (read, write) = parse_concerns(invocation)?;
    refuse_without_set(invocation)?;
    if read.is_none() && write.is_none() {
        let message = "At least one of the 'defaultReadConcern' or 'defaultWriteConcern' fields must be present";
        return Err(Failure::bad_value(message).into());
    }
    let service = invocation.service;
    // Two commands that each set one of the concerns must not undo each other's change.
    let changing = service.default_concerns.change(invocation)?;
    let before = changing.before();
    let read = match read {
        None => before.as_ref().and_then(|before| before.read.clone()),
        Some(read) => checked_read(read)?.map(|read| allowed_read(service, read)).transpose()?,
    };
    let write = match write {
        None => before.as_ref().and_then(|before| before.write.clone()),
        Some(write) if write.is_empty() => {
            if before.as_ref().is_some_and(|before| before.write.is_some()) {
                let message = "The global default write concern cannot be unset once it is set.";
                return Err(Failure::new(ErrorCode::ILLEGAL_OPERATION, message).into());
            }
            None
        }
        Some(write) => Some(checked_write(service, write)?),
    };
    let world = &service.world;
    let set = Set { read, write, time: world.timestamp(), wall_clock_ms: world.now_ms() };
    stored_settings::keep(invocation, DATABASE, COLLECTION, &set.kept())?;
    changing.apply(set);
    // A write stores the defaults. If that write cannot meet the command's write concern, the command fails.
    if let Some(unmet) = &invocation.options.unmet_write_concern {
        return Err(unmet.clone().into());
    }
    write_defaults(invocation, reply);
    Ok(())
}

fn parse_in_memory(fields: &Fields<'_>) -> Result<bool> {
    fields.strict_boolean("inMemory", false)
}

/// The read and the write concern to set.
fn parse_concerns<'a>(fields: &Fields<'a>) -> Result<(Option<DocumentRef<'a>>, Option<DocumentRef<'a>>)> {
    Ok((fields.document("defaultReadConcern")?, fields.document("defaultWriteConcern")?))
}

fn refuse_without_set(invocation: &Invocation<'_>) -> Result<()> {
    if invocation.service.deployment() == Deployment::SetMember {
        return Ok(());
    }
    let message = format!("'{}' is not supported on standalone nodes.", invocation.command.name);
    Err(Failure::new(ErrorCode(51300), message))
}

/// The level to store; `None` if the document unsets it.
fn checked_read(concern: DocumentRef<'_>) -> Result<Option<DocumentBuf>> {
    let mut level = None;
    for element in concern {
        match (element.name, element.value) {
            ("level", ValueRef::Null | ValueRef::Undefined) => {}
            ("level", ValueRef::String(name)) => level = Some(name),
            ("level", value) => return Err(wrong_type("defaultReadConcern.level", value, "string")),
            ("provenance", ValueRef::Null | ValueRef::Undefined) => {}
            ("provenance", ValueRef::String(_)) => {
                return Err(Failure::bad_value("'provenance' must be unset in default read concern"));
            }
            ("provenance", value) => return Err(wrong_type("defaultReadConcern.provenance", value, "string")),
            ("afterClusterTime" | "atClusterTime", ValueRef::Timestamp(_)) => {
                let name = element.name;
                return Err(match (name, concern.get("level").and_then(ValueRef::as_str)) {
                    ("atClusterTime", level) if level != Some("snapshot") => Failure::new(
                        ErrorCode::INVALID_OPTIONS,
                        "readConcern level 'snapshot' is required when specifying atClusterTime",
                    ),
                    _ => Failure::bad_value(format!("'{name}' is not suitable for the default read concern")),
                });
            }
            (name @ ("afterClusterTime" | "atClusterTime"), value) => {
                return Err(wrong_type(&format!("defaultReadConcern.{name}"), value, "timestamp"));
            }
            (name, _) => return Err(Failure::unknown_field(format_args!("defaultReadConcern.{name}"))),
        }
    }
    match level {
        None => Ok(None),
        Some(level @ ("local" | "available" | "majority")) => Ok(Some(DocumentBuf::new().with("level", level))),
        Some(level @ ("linearizable" | "snapshot")) => {
            Err(Failure::bad_value(format!("level: '{level}' is not suitable for the default read concern")))
        }
        Some(level) => Err(Failure::bad_value(format!(
            "Enumeration value '{level}' for field 'defaultReadConcern.level' is not a valid value."
        ))),
    }
}

/// Refuses a default read concern that would change reads. In a set of one member, all levels read the same.
fn allowed_read(service: &Service, concern: DocumentBuf) -> Result<DocumentBuf> {
    let level = concern.as_ref().get("level").and_then(ValueRef::as_str);
    if level == Some("majority") && service.members().is_some() {
        let concern = "the default read concern 'majority', in a set of several members";
        return Err(Failure::not_supported_yet(concern));
    }
    Ok(concern)
}

/// The write concern to store. Each write must be able to meet it.
fn checked_write(service: &Service, concern: DocumentRef<'_>) -> Result<DocumentBuf> {
    let (parsed, unmet) = WriteConcern::parse(service.deployment(), concern)?;
    let unmet = match (parsed.replicas, concern.get("w").and_then(Tagged::of), &service.replica_set) {
        (Replicas::Members(wanted), _, Some(set)) => set.member().check_count(wanted.into()).err(),
        (_, Some(tagged), Some(set)) => set.member().check_tagged(&tagged).err(),
        _ => unmet,
    };
    if let Some(unmet) = unmet {
        return Err(unmet);
    }
    let Some(w) = concern.get("w") else {
        return Err(Failure::bad_value("missing w field is not suitable for the default write concern"));
    };
    if parsed.is_unacknowledged {
        return Err(Failure::bad_value("Unacknowledged write concern is not suitable for the default write concern"));
    }
    if concern.get("provenance").is_some_and(|provenance| !provenance.is_nullish()) {
        return Err(Failure::bad_value("'provenance' must be unset in default write concern"));
    }
    let mut kept = DocumentBuf::new();
    match w {
        ValueRef::String(_) | ValueRef::Document(_) => kept.append("w", w),
        number => kept.append("w", number::clamp_to_i64(number).unwrap_or(1) as i32),
    };
    if let Some(journaled) = concern.get("j").filter(|value| !value.is_nullish()) {
        kept.append("j", truth(journaled));
    }
    if let Some(synced) = concern.get("fsync").filter(|value| !value.is_nullish()) {
        kept.append("fsync", truth(synced));
    }
    let timeout = concern.get("wtimeout").and_then(number::clamp_to_i64).unwrap_or(0);
    kept.append("wtimeout", timeout.clamp(0, i64::from(i32::MAX)) as i32);
    Ok(kept)
}

fn write_defaults(invocation: &Invocation<'_>, reply: &mut Writer<'_>) {
    let service = invocation.service;
    let set = service.default_concerns.set();
    let source = |is_set: bool| if is_set { "global" } else { "implicit" };
    let read = set.as_ref().and_then(|set| set.read.clone());
    let write = set.as_ref().and_then(|set| set.write.clone());
    let (read_source, write_source) = (source(read.is_some()), source(write.is_some()));
    reply.append("defaultReadConcern", &read.unwrap_or_else(|| DocumentBuf::new().with("level", "local")));
    let implied = || match service.implied_replicas() {
        Replicas::Own => DocumentBuf::new().with("w", 1).with("wtimeout", 0),
        _ => DocumentBuf::new().with("w", "majority").with("wtimeout", 0),
    };
    reply.append("defaultWriteConcern", &write.unwrap_or_else(implied));
    if let Some(set) = &set {
        reply.append("updateOpTime", ValueRef::Timestamp(set.time));
        reply.append("updateWallClockTime", ValueRef::DateTime(set.wall_clock_ms));
    }
    reply.append("defaultWriteConcernSource", write_source);
    reply.append("defaultReadConcernSource", read_source);
    let noticed_ms = set.map_or(service.started_at_ms, |set| set.wall_clock_ms);
    reply.append("localUpdateWallClockTime", ValueRef::DateTime(noticed_ms));
}
