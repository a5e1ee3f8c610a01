//! `replSetResizeOplog`: changes the size of the oplog, and the minimum age at which its entries may be removed.
//!
//! The size survives a restart, as MongoDB stores it in the oplog's collection; the age does not.
//! Source: MongoDB manual 8.2, "replSetResizeOplog".

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::{Writer, number};
use bunko_catalog::from_storage;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::facts::{ANY_FIELDS, Changes, CommandFacts, Databases};
use bunko_request::fields::Fields;
use bunko_request::generic_fields::is_generic;
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "replSetResizeOplog",
        fields: ANY_FIELDS,
        databases: Databases::Admin,
        changes: Changes::Other,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCluster(Action::ReplSetResizeOplog),
    run,
    ..Command::PLAIN
};

const SIZE_MB_MIN: f64 = 990.0;
/// A pebibyte.
const SIZE_MB_MAX: f64 = 1_073_741_824.0;
const BYTES_PER_MB: f64 = 1_048_576.0;
const MS_PER_HOUR: f64 = 3_600_000.0;

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let store = invocation.service.catalog.store();
    if !store.keeps_history() {
        return Err(Failure::new(ErrorCode::NAMESPACE_NOT_FOUND, "oplog does not exist").into());
    }
    let argument = invocation.argument();
    if !argument.is_number() {
        return Err(invocation.mismatch(COMMAND.name, argument, "types '[long, int, decimal, double]'").into());
    }
    // MongoDB checks the field names only after it has found the oplog.
    let unknown = invocation
        .request
        .body
        .iter()
        .skip(1)
        .find(|field| !matches!(field.name, "size" | "minRetentionHours") && !is_generic(field.name));
    if let Some(unknown) = unknown {
        return Err(Failure::unknown_field(format_args!("{}.{}", COMMAND.name, unknown.name)).into());
    }
    let size_mb = parse_double(invocation, "size", SIZE_MB_MIN, SIZE_MB_MAX)?;
    let retention_hours = parse_double(invocation, "minRetentionHours", 0.0, f64::INFINITY)?;
    let retention_ms = retention_hours.map(|hours| (hours * MS_PER_HOUR) as u64);
    let frees = retention_ms.is_some_and(|retention_ms| retention_ms < store.history_retention_ms());
    invocation.refuse_if_long(size_mb.is_some() || frees)?;
    if let Some(retention_ms) = retention_ms {
        store.retain_history(retention_ms).map_err(from_storage)?;
    }
    if let Some(size_mb) = size_mb {
        store.resize_history((size_mb * BYTES_PER_MB) as u64).map_err(from_storage)?;
    }
    Ok(())
}

/// Reads a number within bounds.
fn parse_double(fields: &Fields<'_>, name: &str, least: f64, most: f64) -> Result<Option<f64>> {
    let Some(value) = fields.field(name) else { return Ok(None) };
    let number =
        number::as_f64(value).ok_or_else(|| fields.mismatch(name, value, "types '[long, int, decimal, double]'"))?;
    let refused = |relation: &str, bound: f64| {
        Failure::bad_value(format!("BSON field '{name}' value must be {relation} {bound}, actual value '{number}'"))
    };
    match number {
        number if number > most => Err(refused("<=", most)),
        number if number >= least => Ok(Some(number)),
        // The number is too small, or NaN.
        _ => Err(refused(">=", least)),
    }
}
