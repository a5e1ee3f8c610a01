//! `setIndexCommitQuorum`: how many members must be ready before an index is. A build on one server does not wait for
//! other members, so the command only checks that such a build is running.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::commit_quorum;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::{ValueRef, Writer};
use bunko_errors::{ErrorCode, Failure};
use bunko_request::facts::{Changes, CommandFacts, WriteConcernUse};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_request::statement::required_value;
use bunko_session::Halt;

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
    let (names, quorum) = parse(invocation)?;
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
        commit_quorum::check(invocation.service.replica_set.as_deref(), quorum)?;
        return Ok(());
    }
    let message = format!("Cannot find an index build on collection '{namespace}' with the provided index names");
    Err(Failure::new(ErrorCode::INDEX_NOT_FOUND, message).into())
}

/// The names of indexes that are built together, and their quorum.
fn parse<'a>(fields: &Fields<'a>) -> Result<(Vec<&'a str>, ValueRef<'a>), Failure> {
    let names = fields.array("indexNames")?.ok_or_else(|| fields.missing("indexNames"))?;
    let names = fields.texts("indexNames", names)?;
    let quorum = required_value(fields, "commitQuorum")?;
    commit_quorum::check_type(quorum)?;
    Ok((names, quorum))
}
