//! `autoCompact`: lets space that nobody uses be given back in the background.

use crate::authorization::Privileges;
use crate::auto_compaction::{Rounds, Settings};
use crate::dispatch::{Command, Databases, Halt, TransactionUse};
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::Writer;
use bunko_errors::{ErrorCode, Failure};

pub(super) const COMMAND: Command = Command {
    name: "autoCompact",
    aliases: &[],
    fields: &["freeSpaceTargetMB", "runOnce"],
    databases: Databases::Admin,
    transaction: TransactionUse::Refused,
    privileges: Privileges::OnCluster(Action::Compact),
    run,
};

const BYTES_PER_MB: u64 = 1024 * 1024;
/// Source: MongoDB manual, "autoCompact".
const FREE_SPACE_TARGET_MB: i64 = 20;

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let argument = invocation.argument();
    if argument.is_nullish() {
        let message = "BSON field 'autoCompact.autoCompact' is missing but a required field";
        return Err(Failure::new(ErrorCode::IDL_FAILED_TO_PARSE, message).into());
    }
    let is_on = invocation.strict_boolean("autoCompact", false)?;
    let target_mb = invocation.integer("freeSpaceTargetMB")?.unwrap_or(FREE_SPACE_TARGET_MB);
    let target_mb = u64::try_from(target_mb).ok().filter(|target| *target >= 1).ok_or_else(|| {
        Failure::bad_value(format!("BSON field 'freeSpaceTargetMB' value must be >= 1, actual value '{target_mb}'"))
    })?;
    let runs_once = invocation.strict_boolean("runOnce", false)?;
    let rounds = if runs_once { Rounds::Once } else { Rounds::Always };
    let compaction = &invocation.service.auto_compaction;
    if is_on {
        let settings = Settings { free_bytes_min: target_mb.saturating_mul(BYTES_PER_MB), rounds };
        compaction.start(&invocation.service.catalog, settings)?;
    } else {
        compaction.stop();
    }
    Ok(())
}
