//! `top`: the time spent on each collection.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::Writer;
use bunko_observe::Latency;
use bunko_request::counted_as::{OperationClass, UsageKind};
use bunko_request::facts::{ANY_FIELDS, CommandFacts, Databases, Queueing};
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "top",
        // MongoDB ignores unknown fields.
        fields: ANY_FIELDS,
        databases: Databases::Admin,
        queueing: Queueing::AtOnce,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCluster(Action::Top),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    reply.begin_document("totals").append("note", "all times in microseconds");
    for (namespace, usage) in invocation.service.counters.namespaces() {
        reply.begin_document(&namespace);
        write_latency(reply, "total", usage.total());
        write_latency(reply, "readLock", usage.class(OperationClass::Read).sum());
        write_latency(reply, "writeLock", usage.class(OperationClass::Write).sum());
        for (kind, name) in UsageKind::ALL {
            write_latency(reply, name, usage.kind(kind));
        }
        reply.end();
    }
    reply.end();
    Ok(())
}

fn write_latency(reply: &mut Writer<'_>, name: &str, latency: Latency) {
    reply.begin_document(name).append("time", latency.micros as i64).append("count", latency.operations as i64).end();
}
