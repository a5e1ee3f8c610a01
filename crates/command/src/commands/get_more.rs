//! `getMore`: the next batch of a cursor.

use crate::authorization::{Privileges, cursors};
use crate::cursor_reply::write_next_batch;
use crate::dispatch::{Command, Databases, Halt, TransactionUse};
use crate::invocation::Invocation;
use bunko_bson::{ValueRef, Writer};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure};

pub(super) const COMMAND: Command = Command {
    name: "getMore",
    aliases: &[],
    fields: &["collection", "batchSize", "term", "lastKnownCommittedOpTime"],
    databases: Databases::Any,
    transaction: TransactionUse::NotFirst,
    privileges: Privileges::By(cursors::get_more),
    run,
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let id = match invocation.argument() {
        ValueRef::Int64(id) => id,
        other => {
            return Err(Failure::type_mismatch(format!(
                "BSON field 'getMore.getMore' is the wrong type '{}', expected type 'long'",
                other.kind().alias()
            ))
            .into());
        }
    };
    let collection = invocation.string("collection")?.ok_or_else(|| {
        Failure::new(ErrorCode::IDL_FAILED_TO_PARSE, "BSON field 'getMore.collection' is missing but a required field")
    })?;
    check_replication_fields(invocation)?;
    // Also where it is 0: then it does not wait.
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

/// What members of a set tell each other. It has nothing to say to one that is alone, but is read.
fn check_replication_fields(invocation: &Invocation<'_>) -> Result<(), Failure> {
    if let Some(term) = invocation.field("term").filter(|term| !matches!(term, ValueRef::Int64(_))) {
        return Err(invocation.mismatch("term", term, "type 'long'"));
    }
    invocation.document("lastKnownCommittedOpTime").map(drop)
}
