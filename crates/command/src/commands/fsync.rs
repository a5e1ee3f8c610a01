//! `fsync`: makes everything written so far durable, and recovery short.

use crate::dispatch::{Command, Databases, Halt};
use crate::invocation::Invocation;
use bunko_bson::Writer;
use bunko_catalog::from_storage;
use bunko_errors::{ErrorCode, Failure};

pub(super) const COMMAND: Command = Command {
    name: "fsync",
    aliases: &[],
    fields: &["lock", "async", "fsyncLockAcquisitionTimeoutMillis"],
    databases: Databases::Admin,
    run,
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    if invocation.boolean("lock", false)? {
        return Err(Failure::new(
            ErrorCode::COMMAND_NOT_SUPPORTED,
            "fsync with lock: true is not supported: writes cannot be held back",
        )
        .into());
    }
    if invocation.boolean("async", false)? {
        return Err(Failure::new(
            ErrorCode::COMMAND_NOT_SUPPORTED,
            "fsync with async: true is not supported: the reply always waits for the disk",
        )
        .into());
    }
    // It bounds the wait for the lock, and there is none.
    invocation.size("fsyncLockAcquisitionTimeoutMillis")?;
    invocation.refuse_if_long(true)?;
    invocation.service.catalog.store().flush().map_err(from_storage)?;
    reply.append("numFiles", 1);
    Ok(())
}
