//! `appendOplogNote`: appends an entry to the oplog that changes nothing, so that the cluster time advances.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::{DocumentRef, Timestamp, ValueRef, Writer};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::facts::{ANY_FIELDS, Changes, CommandFacts, Databases, WriteConcernUse};
use bunko_request::fields::Fields;
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "appendOplogNote",
        fields: ANY_FIELDS,
        databases: Databases::Admin,
        changes: Changes::Other,
        write_concern: WriteConcernUse::Taken,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCluster(Action::AppendOplogNote),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let service = invocation.service;
    let Some(set) = &service.replica_set else {
        let message = "Must have replication set up to run \"appendOplogNote\"";
        return Err(Failure::new(ErrorCode::NO_REPLICATION_ENABLED, message).into());
    };
    let data = parse_data(invocation)?;
    if let Some(time_max) = parse_time_max(invocation)? {
        let last = set.cluster_time.operation_time();
        if (time_max.seconds, time_max.increment) <= (last.seconds, last.increment) {
            let [asked, last] = [time_max, last].map(|time| format!("Timestamp({}, {})", time.seconds, time.increment));
            let message =
                format!("Requested maxClusterTime {asked} is less or equal to the last primary OpTime: {last}");
            return Err(Failure::new(ErrorCode::STALE_CLUSTER_TIME, message).into());
        }
    }
    let lsn = service.catalog.remark(data)?;
    invocation.note_written(Some(lsn));
    Ok(())
}

/// The document of the entry.
fn parse_data<'a>(fields: &Fields<'a>) -> Result<DocumentRef<'a>> {
    match fields.value("data") {
        None => Err(Failure::new(ErrorCode::NO_SUCH_KEY, "Missing expected field \"data\"")),
        Some(value) => value.as_document().ok_or_else(|| {
            let kind = value.kind().alias();
            Failure::type_mismatch(format!("\"data\" had the wrong type. Expected object, found {kind}"))
        }),
    }
}

/// `maxClusterTime`: the time that the oplog is to reach. No entry is written if it has been reached already.
fn parse_time_max(fields: &Fields<'_>) -> Result<Option<Timestamp>> {
    match fields.value("maxClusterTime") {
        None => Ok(None),
        Some(ValueRef::Timestamp(time)) => Ok(Some(time)),
        Some(value) => {
            let kind = value.kind().alias();
            let message = format!("\"maxClusterTime\" had the wrong type. Expected timestamp, found {kind}");
            Err(Failure::type_mismatch(message))
        }
    }
}
