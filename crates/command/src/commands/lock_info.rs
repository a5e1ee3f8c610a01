//! `lockInfo`: the locks that operations hold or wait for. It shows only the lock of `fsync`: all others are locks on
//! single documents or keys, which last only until a batch is appended.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::{ArrayBuf, DocumentBuf, Writer};
use bunko_request::facts::{CommandFacts, Databases};
use bunko_request::field_kinds::{Kind, field};
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "lockInfo",
        fields: &[field("includeStorageEngineDump", Kind::Boolean)],
        databases: Databases::Admin,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCluster(Action::ServerStatus),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    // `includeStorageEngineDump` makes MongoDB's storage engine write to its log. It does not change the reply.
    reply.begin_array("lockInfo");
    if invocation.service.write_lock.is_closed() {
        let observed = invocation.service.operations.observe();
        let waiting = observed.iter().filter(|observed| observed.is_held_back);
        let pending: ArrayBuf = waiting
            .map(|waiting| request("IX", &format!("conn{}", waiting.connection)))
            .collect::<Vec<_>>()
            .iter()
            .collect();
        let granted: ArrayBuf = [&request("S", "fsyncLockWorker")].into_iter().collect();
        let global =
            DocumentBuf::new().with("resourceId", "{1: Global, 1}").with("granted", &granted).with("pending", &pending);
        reply.push(0, &global);
    }
    reply.end();
    Ok(())
}

fn request(mode: &str, who: &str) -> DocumentBuf {
    DocumentBuf::new().with("mode", mode).with("enqueueAtFront", false).with("compatibleFirst", false).with("desc", who)
}
