//! `dropDatabase`: removes a database with all its collections.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_authority::audit::{AuditEvent, Event};
use bunko_bson::{Writer, number};
use bunko_errors::{ErrorCode, Failure};
use bunko_observe::profiler::DatabaseProfile;
use bunko_request::Request;
use bunko_request::deployment::Deployment;
use bunko_request::facts::{Changes, CommandFacts, Queueing, Stability, WriteConcernUse};
use bunko_request::field_kinds::Kind;
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "dropDatabase",
        changes: Changes::Other,
        write_concern: WriteConcernUse::Taken,
        stable_api: Stability::WHOLE,
        queueing: Queueing::AtOnce,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnDatabase(Action::DropDatabase),
    audit: AuditEvent::Of(events),
    run,
};

/// Maximum number of collections that are dropped without noticeable delay. Each of them needs a log record of its own.
const COLLECTIONS_SHORT_MAX: usize = 50;

/// The database of data that is not replicated, such as the oplog.
const LOCAL: &str = "local";

fn events(request: &Request<'_>) -> Vec<Event> {
    vec![Event::of_namespace(COMMAND.name, request.database)]
}

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    if number::clamp_to_i64(invocation.argument_of(Kind::Number)?) != Some(1) {
        return Err(Failure::new(ErrorCode(5_255_100), "Have to pass 1 as 'dropDatabase' parameter").into());
    }
    let database = invocation.request.database;
    if database == "admin" {
        return Err(Failure::new(
            ErrorCode::ILLEGAL_OPERATION,
            format!("Dropping the '{database}' database is prohibited."),
        )
        .into());
    }
    if database == LOCAL && invocation.service.deployment() == Deployment::SetMember {
        let message = format!("Cannot drop '{LOCAL}' database while replication is active");
        return Err(Failure::new(ErrorCode::ILLEGAL_OPERATION, message).into());
    }
    let catalog = &invocation.service.catalog;
    invocation.refuse_if_long(catalog.collections(database).len() > COLLECTIONS_SHORT_MAX)?;
    let (_, lsn) = catalog.drop_database(database, invocation)?;
    invocation.note_written(lsn);
    // The database's profiling level is dropped too.
    invocation.service.profiler.set_database(database, DatabaseProfile::default());
    invocation.service.counters.forget_namespace(database, None);
    Ok(())
}
