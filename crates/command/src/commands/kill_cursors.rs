//! `killCursors`: closes cursors.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::service::Service;
use bunko_access::Action;
use bunko_authority::Asker;
use bunko_bson::{ArrayRef, ValueRef, Writer, number};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure};
use bunko_request::Request;
use bunko_request::facts::{CommandFacts, Profiling, Queueing, Stability, TransactionUse};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::{Fields, elements};
use bunko_session::Halt;
use bunko_session::cursors::Killed;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "killCursors",
        fields: &[field("cursors", Kind::Longs)],
        transaction: TransactionUse::NotFirst,
        stable_api: Stability::WHOLE,
        queueing: Queueing::AtOnce,
        profiling: Profiling::Never,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::ByServer(may_kill),
    run,
    ..Command::PLAIN
};

/// Whether all cursors are the user's own, or the user may kill any cursor on the collections that they read. The
/// collection in the command does not count: nothing checks that the cursors read it.
fn may_kill(service: &Service, asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let Some(user) = asker.user() else { return false };
    if asker.on_cluster(Action::KillAnyCursor) {
        return true;
    }
    let may_close = |id| {
        service.cursors.owner_and_namespace(id).is_none_or(|(owner, read)| {
            owner.is_some_and(|owner| owner.name == *user)
                || asker.on_collection(read.database(), read.collection(), Action::KillAnyCursor)
        })
    };
    let arrays = request.body.iter().filter_map(|field| field.value.as_array());
    arrays.flat_map(ArrayRef::iter).all(|id| match id {
        ValueRef::Int64(id) => may_close(id),
        _ => true,
    })
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let ValueRef::String(collection) = invocation.argument() else {
        let kind = invocation.argument().kind().alias();
        let message = format!("collection name has invalid type {kind}");
        return Err(Failure::new(ErrorCode::INVALID_NAMESPACE, message).into());
    };
    // The collection is only checked for a valid name. The owner of a cursor decides whether it may be closed.
    Namespace::of_cursor(invocation.request.database, collection)?;
    invocation.note_collection(collection);
    let ids = parse(invocation)?;
    let cursors = &invocation.service.cursors;
    let (killed, missing): (Vec<i64>, Vec<i64>) =
        ids.into_iter().partition(|id| cursors.kill(*id, None) == Killed::Closed);
    write_ids(reply, "cursorsKilled", &killed);
    write_ids(reply, "cursorsNotFound", &missing);
    write_ids(reply, "cursorsAlive", &[]);
    write_ids(reply, "cursorsUnknown", &[]);
    Ok(())
}

/// The ids of the cursors.
fn parse(fields: &Fields<'_>) -> Result<Vec<i64>, Failure> {
    let ids = fields.array("cursors")?.ok_or_else(|| fields.missing("cursors"))?;
    Ok(elements(ids).filter_map(|(_, id)| number::as_i64_exact(id)).collect())
}

fn write_ids(reply: &mut Writer<'_>, name: &str, ids: &[i64]) {
    reply.begin_array(name);
    for (index, id) in ids.iter().enumerate() {
        reply.push(index, *id);
    }
    reply.end();
}
