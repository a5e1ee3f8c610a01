//! `reIndex`: rebuilds the indexes of a collection. Writes to the collection wait meanwhile.

use super::list_indexes::listed;
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::Writer;
use bunko_errors::{ErrorCode, Failure};
use bunko_request::deployment::Deployment;
use bunko_request::facts::{ANY_FIELDS, Changes, CommandFacts};
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts { name: "reIndex", fields: ANY_FIELDS, changes: Changes::Other, ..CommandFacts::PLAIN },
    privileges: Privileges::OnCollection(Action::ReIndex),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace()?;
    if invocation.service.deployment() == Deployment::SetMember {
        let message = "reIndex is only allowed on a standalone mongod instance.";
        return Err(Failure::new(ErrorCode::ILLEGAL_OPERATION, message).into());
    }
    let collection = invocation
        .collection_not_view(&namespace)?
        .ok_or_else(|| Failure::new(ErrorCode::NAMESPACE_NOT_FOUND, format!("ns does not exist: {namespace}")))?;
    invocation.refuse_if_long(true)?;
    let count = |indexes: &[_]| i32::try_from(indexes.len()).unwrap_or(i32::MAX);
    let before = count(&collection.indexes());
    let lsn = invocation.service.catalog.rebuild_indexes(&collection, &*invocation)?;
    invocation.note_written(lsn);
    let indexes = collection.indexes();
    reply.append("nIndexesWas", before).append("nIndexes", count(&indexes)).begin_array("indexes");
    for (position, index) in indexes.iter().enumerate() {
        reply.push(position, &listed(index.document.as_ref()));
    }
    reply.end();
    Ok(())
}
