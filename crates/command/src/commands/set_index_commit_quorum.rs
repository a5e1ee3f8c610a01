//! `setIndexCommitQuorum`: how many members must be ready before an index is. A build on one server does not wait for
//! other members, so the command only checks that such a build is running.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::commit_quorum;
use crate::dispatch::Halt;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::Writer;
use bunko_errors::{ErrorCode, Failure};
use bunko_request::facts::{Changes, CommandFacts, WriteConcernUse};
use bunko_request::field_kinds::{Kind, field};

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "setIndexCommitQuorum",
        fields: &[field("indexNames", Kind::Texts), field("commitQuorum", Kind::Own)],
        changes: Changes::Other,
        write_concern: WriteConcernUse::Taken,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCollection(Action::CreateIndex),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace()?;
    let missing = |name: &str| {
        let message = format!("BSON field 'setIndexCommitQuorum.{name}' is missing but a required field");
        Failure::new(ErrorCode::IDL_FAILED_TO_PARSE, message)
    };
    let names = invocation.array("indexNames")?.ok_or_else(|| missing("indexNames"))?;
    let names = invocation.texts("indexNames", names)?;
    let quorum = invocation.field("commitQuorum").ok_or_else(|| missing("commitQuorum"))?;
    commit_quorum::check_type(quorum)?;
    if names.is_empty() {
        let message = format!(
            "Cannot set a new commit quorum on an index build in collection '{namespace}' without providing any indexes."
        );
        return Err(Failure::new(ErrorCode::INDEX_NOT_FOUND, message).into());
    }
    let collection = invocation.collection(&namespace).ok_or_else(|| {
        Failure::new(ErrorCode::NAMESPACE_NOT_FOUND, format!("Collection '{namespace}' was not found."))
    })?;
    if collection.indexes_built_together(&names).is_some() {
        commit_quorum::check(invocation.service.deployment(), quorum)?;
        return Ok(());
    }
    let message = format!("Cannot find an index build on collection '{namespace}' with the provided index names");
    Err(Failure::new(ErrorCode::INDEX_NOT_FOUND, message).into())
}
