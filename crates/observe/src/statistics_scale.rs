//! The `scale` of statistics, by which sizes are divided.

use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;

/// The `scale`: 1 if missing, at most the largest int32. Fractions are truncated.
/// # Errors
/// `BadValue` below 1.
pub fn scale(fields: &Fields<'_>) -> Result<u64> {
    let scale = fields.integer("scale")?.unwrap_or(1);
    match u64::try_from(scale) {
        Ok(scale) if scale >= 1 => Ok(scale.min(i32::MAX as u64)),
        _ => Err(Failure::new(
            ErrorCode::BAD_VALUE,
            format!("BSON field 'scale' value must be >= 1, actual value '{scale}'"),
        )),
    }
}

/// Refuses options of storage statistics that are not booleans. The options have no effect here: `verbose` and
/// `numericOnly` are about details of MongoDB's storage engine, and no reader waits for a lock.
/// # Errors
/// `TypeMismatch`.
pub fn check_storage_options(fields: &Fields<'_>) -> Result<()> {
    ["verbose", "waitForLock", "numericOnly"].into_iter().try_for_each(|name| {
        fields.value(name).map_or(Ok(()), |value| field(name, Kind::Flag).check_value(fields.command, value))
    })
}
