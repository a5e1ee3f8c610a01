//! `replSetResizeOplog`: another size for the oplog, and how old its entries become at least.
//!
//! The size outlives the server, as MongoDB keeps it in the oplog's collection; the age does not.
//! Source: MongoDB manual 8.2, "replSetResizeOplog".

use crate::authorization::Privileges;
use crate::dispatch::{ANY_FIELDS, Command, Databases, Halt, TransactionUse};
use crate::fields::wrong_type;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::{ValueRef, Writer};
use bunko_catalog::from_storage;
use bunko_errors::{ErrorCode, Failure, Result};

pub(super) const COMMAND: Command = Command {
    name: "replSetResizeOplog",
    aliases: &[],
    fields: ANY_FIELDS,
    databases: Databases::Admin,
    transaction: TransactionUse::Refused,
    privileges: Privileges::OnCluster(Action::ReplSetResizeOplog),
    run,
};

const SIZE_MB_MIN: f64 = 990.0;
/// A petabyte.
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
    let size_mb = double(invocation, "size", SIZE_MB_MIN, SIZE_MB_MAX)?;
    let retention_hours = double(invocation, "minRetentionHours", 0.0, f64::INFINITY)?;
    invocation.refuse_if_long(size_mb.is_some())?;
    if let Some(hours) = retention_hours {
        store.retain_history((hours * MS_PER_HOUR) as u64);
    }
    if let Some(size_mb) = size_mb {
        store.resize_history((size_mb * BYTES_PER_MB) as u64).map_err(from_storage)?;
    }
    Ok(())
}

/// A field that is a double, and no other number, within bounds.
fn double(invocation: &Invocation<'_>, name: &str, least: f64, most: f64) -> Result<Option<f64>> {
    let Some(value) = invocation.field(name) else { return Ok(None) };
    let ValueRef::Double(number) = value else {
        return Err(wrong_type(&format!("{}.{name}", COMMAND.name), value, "double"));
    };
    let refused = |relation: &str, bound: f64| {
        Failure::bad_value(format!("BSON field '{name}' value must be {relation} {bound}, actual value '{number}'"))
    };
    match number {
        number if number > most => Err(refused("<=", most)),
        number if number >= least => Ok(Some(number)),
        // Smaller, or no number at all.
        _ => Err(refused(">=", least)),
    }
}
