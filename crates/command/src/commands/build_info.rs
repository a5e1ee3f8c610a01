//! `buildInfo`: the version of the server, and how it was built.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::service::Service;
use bunko_bson::{MAX_USER_DOCUMENT_BYTES, Writer};
use bunko_operation::Scripting;
use bunko_request::facts::{CommandFacts, TransactionUse};
use bunko_session::Halt;

/// The MongoDB release whose behaviour this server follows. Clients decide by it which features they may use.
pub(super) const COMPATIBLE_VERSION: &str = "8.2.4";
const COMPATIBLE_VERSION_ARRAY: [i32; 4] = [8, 2, 4, 0];

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "buildInfo",
        aliases: &["buildinfo"],
        transaction: TransactionUse::NotFirst,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::BeforeLogin,
    run,
    ..Command::PLAIN
};

/// The engine that runs clients' scripts.
fn javascript_engine(service: &Service) -> &'static str {
    match service.facts.memory_limits.stages.scripting {
        Scripting::Allowed => "quickjs",
        Scripting::Refused => "none",
    }
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    append_build(invocation.service, reply);
    Ok(())
}

/// Appends the fields that describe the build.
pub(crate) fn append_build(service: &Service, reply: &mut Writer<'_>) {
    reply
        .append("version", COMPATIBLE_VERSION)
        .append("gitVersion", "bunko")
        .begin_array("modules")
        .end()
        .append("javascriptEngine", javascript_engine(service))
        .append("sysInfo", "deprecated")
        .begin_array("versionArray");
    for (index, part) in COMPATIBLE_VERSION_ARRAY.iter().enumerate() {
        reply.push(index, *part);
    }
    reply
        .end()
        .begin_document("openssl")
        .append("running", "disabled")
        .append("compiled", "disabled")
        .end()
        .begin_document("buildEnvironment")
        .append("distarch", std::env::consts::ARCH)
        .append("target_arch", std::env::consts::ARCH)
        .append("target_os", std::env::consts::OS)
        .end()
        .append("bits", usize::BITS as i32)
        .append("debug", cfg!(debug_assertions))
        .append("maxBsonObjectSize", MAX_USER_DOCUMENT_BYTES as i32)
        .begin_array("storageEngines");
    for (position, name) in service.catalog.store().engine_names().into_iter().enumerate() {
        reply.push(position, name);
    }
    reply.end().begin_document("bunko").append("version", env!("CARGO_PKG_VERSION")).end();
}
