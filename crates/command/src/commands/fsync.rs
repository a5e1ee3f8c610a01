//! `fsync`: makes all earlier writes durable, and recovery short. With `lock: true` it blocks writes until
//! `fsyncUnlock`, so that the files can be copied.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::Writer;
use bunko_catalog::from_storage;
use bunko_errors::Failure;
use bunko_request::facts::{ANY_FIELDS, CommandFacts, Databases, Queueing};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_session::Halt;
use std::time::Duration;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "fsync",
        fields: &[field("lock", Kind::BooleanLike), field("fsyncLockAcquisitionTimeoutMillis", Kind::Int)],
        databases: Databases::Admin,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCluster(Action::Fsync),
    run,
    ..Command::PLAIN
};

pub(super) const UNLOCK: Command = Command {
    facts: CommandFacts {
        name: "fsyncUnlock",
        fields: ANY_FIELDS,
        databases: Databases::Admin,
        queueing: Queueing::AtOnce,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCluster(Action::UnlockAction),
    run: unlock,
    ..Command::PLAIN
};

/// Default time that the lock waits for running writes, in milliseconds.
/// Source: MongoDB manual, "fsync".
const PATIENCE_MS: i64 = 90_000;

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let (locks, patience_ms) = parse(invocation)?;
    invocation.refuse_if_long(true)?;
    let write_lock = &invocation.service.write_lock;
    if locks {
        let patience_ms = u64::try_from(patience_ms).unwrap_or_default().min(i32::MAX as u64);
        let service = invocation.service;
        let is_following = || service.members().is_some_and(|members| members.is_changing());
        let is_one_writing =
            || service.operations.is_one_writing() || service.time_to_live.is_deleting() || is_following();
        let patience = Duration::from_millis(patience_ms);
        let count = write_lock.lock(invocation.operation(), patience, &service.catalog, is_one_writing)?;
        reply
            .append("info", "now locked against writes, use db.fsyncUnlock() to unlock")
            .append("lockCount", count as i64)
            .append("seeAlso", "http://dochub.mongodb.org/core/fsynccommand");
        return Ok(());
    }
    // While the lock is held, all writes are durable and the files must not change.
    if !write_lock.is_closed() {
        invocation.service.catalog.store().flush().map_err(from_storage)?;
    }
    reply.append("numFiles", 1);
    Ok(())
}

/// Whether to lock, and how long to wait for the lock, in milliseconds.
fn parse(fields: &Fields<'_>) -> Result<(bool, i64), Failure> {
    let patience_ms = fields.integer("fsyncLockAcquisitionTimeoutMillis")?.unwrap_or(PATIENCE_MS);
    Ok((fields.boolean("lock", false)?, patience_ms))
}

fn unlock(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    // `unlock` waits for the thread that keeps the files unchanged, which ends at once.
    let count = invocation.service.write_lock.unlock()?;
    reply.append("info", "fsyncUnlock completed").append("lockCount", count as i64);
    Ok(())
}
