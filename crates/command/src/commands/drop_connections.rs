//! `dropConnections`: ends the connections that the server has made to others. This one makes none.

use crate::authorization::Privileges;
use crate::dispatch::{Command, Databases, Halt, TransactionUse};
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::Writer;
use bunko_errors::{ErrorCode, Failure};

pub(super) const COMMAND: Command = Command {
    name: "dropConnections",
    aliases: &[],
    fields: &["hostAndPort"],
    databases: Databases::Admin,
    transaction: TransactionUse::Refused,
    privileges: Privileges::OnCluster(Action::DropConnections),
    run,
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let hosts = invocation.array("hostAndPort")?.ok_or_else(|| {
        let message = "BSON field 'dropConnections.hostAndPort' is missing but a required field";
        Failure::new(ErrorCode::IDL_FAILED_TO_PARSE, message)
    })?;
    for (index, host) in hosts.iter().enumerate().filter(|(_, host)| !host.is_nullish()) {
        if host.as_str().is_none() {
            return Err(invocation.mismatch(&format!("hostAndPort.{index}"), host, "type 'string'").into());
        }
    }
    Ok(())
}
