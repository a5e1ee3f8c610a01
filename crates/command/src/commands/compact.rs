//! `compact`: returns free space to the system, from the named collection and from all others.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::target::Target;
use bunko_access::Action;
use bunko_bson::Writer;
use bunko_catalog::from_storage;
use bunko_errors::{ErrorCode, Failure};
use bunko_pipelines::{CollectionStatistics, smallest_integer};
use bunko_request::deployment::Deployment;
use bunko_request::facts::CommandFacts;
use bunko_request::field_kinds::{Kind, POSITIVE, field};
use bunko_request::fields::Fields;
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "compact",
        fields: &[field("dryRun", Kind::Boolean), field("force", Kind::Boolean), field("freeSpaceTargetMB", POSITIVE)],
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCollection(Action::Compact),
    run,
    ..Command::PLAIN
};

const BYTES_PER_MB: u64 = 1024 * 1024;

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace()?;
    let Options { is_dry_run, is_forced, target_bytes } = Options::parse(invocation)?;
    if invocation.service.deployment() == Deployment::SetMember && !is_forced {
        let message = "will not run compact on an active replica set primary as this will slow down other running \
                       operations. use force:true to force";
        return Err(Failure::new(ErrorCode::ILLEGAL_OPERATION, message).into());
    }
    let collection = Target::of(&invocation.service.catalog, invocation, &namespace)?
        .into_stored(&invocation.service.catalog, &namespace)?
        .ok_or_else(|| Failure::new(ErrorCode::NAMESPACE_NOT_FOUND, "collection does not exist"))?;
    let before = CollectionStatistics::of(&collection);
    if is_dry_run {
        reply.append("estimatedBytesFreed", smallest_integer(before.free_bytes()));
        return Ok(());
    }
    if before.free_bytes() < target_bytes {
        reply.append("bytesFreed", 0);
        return Ok(());
    }
    invocation.refuse_if_long(true)?;
    invocation.service.catalog.store().compact().map_err(from_storage)?;
    let after = CollectionStatistics::of(&collection);
    reply.append("bytesFreed", smallest_integer(before.total_bytes().saturating_sub(after.total_bytes())));
    Ok(())
}

struct Options {
    is_dry_run: bool,
    is_forced: bool,
    /// Free space of the collection, in bytes, below which the command does nothing. The default is 0, so the command
    /// always compacts; MongoDB's default is 20 MB.
    target_bytes: u64,
}

impl Options {
    fn parse(fields: &Fields<'_>) -> Result<Self, Failure> {
        Ok(Self {
            is_dry_run: fields.strict_boolean("dryRun", false)?,
            is_forced: fields.strict_boolean("force", false)?,
            target_bytes: fields.size("freeSpaceTargetMB")?.unwrap_or(0).saturating_mul(BYTES_PER_MB),
        })
    }
}
