//! `getMore`: the next batch of a cursor.

use crate::cursor_reply::write_next_batch;
use crate::dispatch::{Command, Databases, Halt};
use crate::invocation::Invocation;
use bunko_bson::{ValueRef, Writer};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure};

pub(super) const COMMAND: Command = Command {
    name: "getMore",
    aliases: &[],
    fields: &["collection", "batchSize", "term", "lastKnownCommittedOpTime"],
    databases: Databases::Any,
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
    // Even one that means none.
    if invocation.request.body.get("maxTimeMS").is_some_and(|limit| !limit.is_nullish()) {
        return Err(Failure::bad_value("cannot set maxTimeMS on getMore command for a non-awaitData cursor").into());
    }
    invocation.note_collection(collection);
    let namespace = Namespace::of_cursor(invocation.request.database, collection)?;
    let documents = match invocation.size("batchSize")? {
        None | Some(0) => u64::MAX,
        Some(size) => size,
    };
    invocation.refuse_if_long(invocation.service.cursors.is_long(id))?;
    write_next_batch(invocation, reply, id, &namespace, documents)?;
    Ok(())
}
