//! `drop`: removes a collection with its indexes.

use crate::authorization::Privileges;
use crate::collection_uuid;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::system_namespace::check_removable;
use bunko_access::Action;
use bunko_authority::audit::{AuditEvent, Event};
use bunko_bson::Writer;
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure};
use bunko_observe::profiler::{Level, PROFILE};
use bunko_request::Request;
use bunko_request::facts::{Changes, CommandFacts, Queueing, Stability, UnstoredUse, WriteConcernUse};
use bunko_request::field_kinds::{Kind, field};
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "drop",
        fields: &[field("collectionUUID", Kind::Uuid)],
        changes: Changes::Other,
        write_concern: WriteConcernUse::Taken,
        stable_api: Stability::WHOLE,
        queueing: Queueing::AtOnce,
        unstored: UnstoredUse::RefusedAsDrop,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCollection(Action::DropCollection),
    audit: AuditEvent::Of(events),
    run,
};

fn events(request: &Request<'_>) -> Vec<Event> {
    vec![Event::of_collection("dropCollection", request)]
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace()?;
    check_removable("drop", &namespace)?;
    if namespace.collection() == PROFILE
        && invocation.service.profiler.database(namespace.database()).level != Level::None
    {
        let message = "turn off profiling before dropping system.profile collection";
        return Err(Failure::new(ErrorCode::ILLEGAL_OPERATION, message).into());
    }
    collection_uuid::check(&invocation.service.catalog, &namespace, collection_uuid::parse(invocation)?)?;
    drop_it(invocation, &namespace, reply)?;
    invocation.forget_namespace(&namespace);
    Ok(())
}

fn drop_it(invocation: &mut Invocation<'_>, namespace: &Namespace, reply: &mut Writer<'_>) -> Result<(), Failure> {
    // Since MongoDB 7.0 it is not an error to drop a collection that does not exist.
    let dropped = invocation.service.catalog.drop_collection(namespace, invocation)?;
    let Some(outcome) = dropped else {
        let buckets = bunko_series::find(&invocation.service.catalog, namespace)?;
        if let Some(lsn) = invocation.service.catalog.drop_view(namespace, invocation)? {
            invocation.note_written(Some(lsn));
            reply.append("ns", namespace.as_str());
        }
        if let Some(series) = buckets {
            let dropped = invocation.service.catalog.drop_collection(&series.buckets.namespace(), invocation)?;
            invocation.note_written(dropped.map(|dropped| dropped.lsn));
        }
        return Ok(());
    };
    invocation.note_written(Some(outcome.lsn));
    reply.append("nIndexesWas", outcome.indexes as i32).append("ns", namespace.as_str());
    Ok(())
}
