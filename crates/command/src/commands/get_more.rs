//! `getMore`: returns the next batch of a cursor.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::cursor_reply::write_next_batch;
use crate::invocation::Invocation;
use crate::service::Service;
use bunko_authority::Asker;
use bunko_bson::{ValueRef, Writer, number};
use bunko_catalog::Namespace;
use bunko_errors::Failure;
use bunko_request::Request;
use bunko_request::counted_as::{Opcounter, OperationClass, UsageKind};
use bunko_request::facts::{CommandFacts, ReadConcernUse, ReadsFrom, Stability, TransactionUse};
use bunko_request::field_kinds::{Kind, NOT_NEGATIVE, field};
use bunko_request::fields::Fields;
use bunko_session::Halt;

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

struct GetMore<'a> {
    collection: &'a str,
    /// Maximum number of documents of the batch.
    documents: u64,
    /// Whether the command limits its time. A given 0 counts too: the command then does not wait.
    has_max_time: bool,
}

impl<'a> GetMore<'a> {
    fn parse(fields: &Fields<'a>) -> Result<Self, Failure> {
        Ok(Self {
            collection: fields.string("collection")?.ok_or_else(|| fields.missing("collection"))?,
            documents: fields.size("batchSize")?.filter(|size| *size > 0).unwrap_or(u64::MAX),
            has_max_time: fields.field("maxTimeMS").is_some(),
        })
    }
}

/// Whether the cursor is the user's own, and none of their privileges was revoked since it was opened.
fn may_continue(service: &Service, asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let Some(user) = asker.logged_in() else { return false };
    match request.argument() {
        ValueRef::Int64(id) => !service.cursors.is_anothers(id, |owner| user.is_still_owner(owner)),
        _ => true,
    }
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let id = number::clamp_to_i64(invocation.argument_of(Kind::Long)?).unwrap_or_default();
    let GetMore { collection, documents, has_max_time } = GetMore::parse(invocation)?;
    let wait = has_max_time.then(|| invocation.options.max_time.unwrap_or_default());
    invocation.note_collection(collection);
    let namespace = Namespace::of_cursor(invocation.request.database, collection)?;
    invocation.refuse_if_long(invocation.service.cursors.is_long(id))?;
    write_next_batch(invocation, reply, id, &namespace, documents, wait)
}
