//! `replSetGetConfig`: the configuration of the set, as `rs.conf()` shows it.

use super::repl_set_get_status::no_set;
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::Writer;
use bunko_errors::Failure;
use bunko_replica_set::shown;
use bunko_request::facts::{CommandFacts, Databases};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "replSetGetConfig",
        fields: &[field("commitmentStatus", Kind::BooleanLike)],
        databases: Databases::Admin,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCluster(Action::ReplSetGetConfig),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let set = invocation.service.replica_set.as_ref().ok_or_else(no_set)?;
    let asks_for_commitment = parse(invocation)?;
    reply.append("config", &shown(set.member().configuration.as_ref()));
    if asks_for_commitment {
        let is_committed = invocation.service.members().is_none_or(|members| members.is_configuration_committed());
        reply.append("commitmentStatus", is_committed);
    }
    Ok(())
}

/// Whether the reply tells that the configuration is committed.
fn parse(fields: &Fields<'_>) -> Result<bool, Failure> {
    fields.boolean("commitmentStatus", false)
}
