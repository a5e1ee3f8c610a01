//! `getCmdLineOpts`: the options that the process was started with.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::Writer;
use bunko_request::facts::{CommandFacts, Databases};
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts { name: "getCmdLineOpts", databases: Databases::Admin, ..CommandFacts::PLAIN },
    privileges: Privileges::OnCluster(Action::GetCmdLineOpts),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let facts = &invocation.service.facts;
    reply.begin_array("argv");
    for (index, argument) in facts.arguments.iter().enumerate() {
        reply.push(index, argument);
    }
    reply.end().append("parsed", &facts.parsed_options);
    Ok(())
}
