//! `connPoolStats`: the connections that the server has made to other servers. Bunko makes none.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::Writer;
use bunko_request::facts::{ANY_FIELDS, CommandFacts};
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts { name: "connPoolStats", fields: ANY_FIELDS, ..CommandFacts::PLAIN },
    privileges: Privileges::OnCluster(Action::ConnPoolStats),
    run,
    ..Command::PLAIN
};

fn run(_: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let counts = [
        "numClientConnections",
        "numAScopedConnections",
        "totalInUse",
        "totalAvailable",
        "totalLeased",
        "totalCreated",
        "totalRefreshing",
        "totalRefreshed",
    ];
    for count in counts {
        reply.append(count, 0);
    }
    for empty in ["pools", "hosts", "replicaSets"] {
        reply.begin_document(empty).end();
    }
    Ok(())
}
