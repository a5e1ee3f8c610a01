//! `getMore`: returns the next batch of a cursor.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::cursor_reply::write_next_batch;
use crate::dispatch::Halt;
use crate::invocation::Invocation;
use crate::service::Service;
use bunko_authority::Asker;
use bunko_bson::{ValueRef, Writer, number};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure};
use bunko_request::Request;
use bunko_request::counted_as::Opcounter;
use bunko_request::counted_as::OperationClass;
use bunko_request::counted_as::UsageKind;
use bunko_request::facts::{CommandFacts, ReadConcernUse, ReadsFrom, Stability, TransactionUse};
use bunko_request::field_kinds::{Kind, NOT_NEGATIVE, field};

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "getMore",
        fields: &[
            field("collection", Kind::Text),
            field("batchSize", NOT_NEGATIVE),
            field("term", Kind::Long),
            field("lastKnownCommittedOpTime", Kind::Object),
        ],
        transaction: TransactionUse::NotFirst,
        reads: ReadsFrom::Cursor,
        read_concern: ReadConcernUse::KeptByCursor,
        stable_api: Stability::Version1 { fields_outside: &["lastKnownCommittedOpTime", "term"] },
        class: OperationClass::Read,
        usage: UsageKind::GetMore,
        opcounter: Opcounter::GetMore,
        internal_fields: &["includeQueryStatsMetrics"],
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::ByServer(may_continue),
    run,
    ..Command::PLAIN
};

/// The cursor is the user's own, and none of their privileges was revoked since.
fn may_continue(service: &Service, asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let Some(user) = asker.logged_in() else { return false };
    match request.argument() {
        ValueRef::Int64(id) => !service.cursors.is_anothers(id, |owner| user.is_still_owner(owner)),
        _ => true,
    }
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let id = number::clamp_to_i64(invocation.argument_of(Kind::Long)?).unwrap_or_default();
    let collection = invocation.string("collection")?.ok_or_else(|| {
        Failure::new(ErrorCode::IDL_FAILED_TO_PARSE, "BSON field 'getMore.collection' is missing but a required field")
    })?;
    // A given 0 counts too: the command then does not wait.
    let is_told = invocation.request.body.get("maxTimeMS").is_some_and(|limit| !limit.is_nullish());
    let wait = is_told.then(|| invocation.options.max_time.unwrap_or_default());
    invocation.note_collection(collection);
    let namespace = Namespace::of_cursor(invocation.request.database, collection)?;
    let documents = match invocation.size("batchSize")? {
        None | Some(0) => u64::MAX,
        Some(size) => size,
    };
    invocation.refuse_if_long(invocation.service.cursors.is_long(id))?;
    write_next_batch(invocation, reply, id, &namespace, documents, wait)
}
