//! `getDiagnosticData`: the data that monitors collect, in one reply: `serverStatus`, and the machine's processors and
//! memory.
//!
//! MongoDB takes a sample each second and returns the newest one. Bunko takes the sample when a client asks for it.

use super::{repl_set_get_status, server_status};
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::{DocumentRef, ValueRef, Writer};
use bunko_observe::machine;
use bunko_pipelines::oplog;
use bunko_request::facts::{ANY_FIELDS, CommandFacts, Databases};
use bunko_session::Halt;
use std::thread::available_parallelism;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "getDiagnosticData",
        // MongoDB ignores unknown fields.
        fields: ANY_FIELDS,
        databases: Databases::Admin,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCluster(Action::ServerStatus),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let service = invocation.service;
    let now = || ValueRef::DateTime(service.world.now_ms());
    reply.begin_document("data").append("start", now());
    reply.begin_document(server_status::COMMAND.name).append("start", now());
    server_status::write(service, DocumentRef::EMPTY, reply);
    reply.append("end", now()).end();
    if service.replica_set.is_some() {
        reply.begin_document(repl_set_get_status::COMMAND.name).append("start", now());
        repl_set_get_status::write(service, reply)?;
        reply.append("end", now()).end();
    }
    if let Some((database, bytes)) = oplog::database(&service.catalog) {
        let bytes_max = service.catalog.store().history_bytes_max().unwrap_or_default();
        // The number of entries is left out: counting them means reading all of them.
        reply
            .begin_document("local.oplog.rs.stats")
            .append("start", now())
            .append("ns", &format!("{database}.oplog.rs"))
            .append("size", bytes as i64)
            .append("storageSize", bytes as i64)
            .append("capped", true)
            .append("maxSize", bytes_max as i64)
            .append("end", now())
            .end();
    }
    reply.begin_document("systemMetrics").append("start", now());
    reply.begin_document("cpu").append("num_cpus", available_parallelism().map_or(1, usize::from) as i32);
    for (name, milliseconds) in machine::processor_times_ms() {
        reply.append(name, milliseconds as i64);
    }
    reply.end().begin_document("memory");
    for (name, kibibytes) in machine::memory_kb() {
        reply.append(&name, kibibytes as i64);
    }
    reply.end().append("end", now()).end();
    reply.append("end", now()).end();
    Ok(())
}
