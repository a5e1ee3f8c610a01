//! `autoCompact`: returns unused space to the system in the background.

use crate::authorization::Privileges;
use crate::auto_compaction::{Rounds, Settings};
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::Writer;
use bunko_errors::Failure;
use bunko_request::facts::{CommandFacts, Databases};
use bunko_request::field_kinds::{Kind, POSITIVE, field};
use bunko_request::fields::{Fields, truth};
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "autoCompact",
        fields: &[field("freeSpaceTargetMB", POSITIVE), field("runOnce", Kind::Boolean)],
        databases: Databases::Admin,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCluster(Action::Compact),
    run,
    ..Command::PLAIN
};

const BYTES_PER_MB: u64 = 1024 * 1024;
/// The default of `freeSpaceTargetMB`. Source: MongoDB manual, "autoCompact".
const FREE_SPACE_TARGET_MB: u64 = 20;

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let is_on = truth(invocation.argument_of(Kind::Boolean)?);
    let settings = parse(invocation)?;
    let compaction = &invocation.service.auto_compaction;
    if is_on {
        compaction.start(&invocation.service.catalog, settings)?;
    } else {
        compaction.stop();
    }
    Ok(())
}

fn parse(fields: &Fields<'_>) -> Result<Settings, Failure> {
    let target_mb = fields.size("freeSpaceTargetMB")?.unwrap_or(FREE_SPACE_TARGET_MB);
    let rounds = if fields.strict_boolean("runOnce", false)? { Rounds::Once } else { Rounds::Always };
    Ok(Settings { free_bytes_min: target_mb.saturating_mul(BYTES_PER_MB), rounds })
}
