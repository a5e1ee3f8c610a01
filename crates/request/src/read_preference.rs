//! `$readPreference`: checked, although a single node satisfies any preference.

use crate::fields::wrong_type;
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentRef, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};

const MODES: &[&str] = &["primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest"];

/// The smallest `maxStalenessSeconds`. 0 is allowed too and means no limit.
const STALENESS_SECONDS_MIN: f64 = 90.0;

/// Checks a read preference.
/// # Errors
/// 40414 without a mode; `TypeMismatch` for a field of the wrong type; `BadValue` for an unknown mode, a negative
/// staleness, and tags or staleness with the mode `primary`; `MaxStalenessOutOfRange` below 90 s; `InvalidOptions` for
/// hedged reads with `primary`.
/// Source: MongoDB manual, "Read Preference".
pub fn check(preference: DocumentRef<'_>) -> Result<()> {
    let is_primary = check_mode(preference)?;
    let field = |name| preference.get(name).filter(|value| !value.is_nullish());
    if let Some(hedge) = field("hedge") {
        let hedge = hedge.as_document().ok_or_else(|| wrong_type("readPreference.hedge", hedge, "object"))?;
        if is_primary && !matches!(hedge.get("enabled"), Some(ValueRef::Boolean(false))) {
            let message = "cannot enable hedging for $readPreference mode \"primaryOnly\"";
            return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
        }
    }
    if let Some(tags) = field("tags") {
        let ValueRef::Array(tags) = tags else { return Err(wrong_type("readPreference.tags", tags, "array")) };
        // [{}] matches any member, as an empty list does.
        let fits_any =
            tags.iter().all(|set| set.as_document().is_some_and(DocumentRef::is_empty)) && tags.iter().count() < 2;
        if is_primary && !fits_any {
            return Err(Failure::bad_value("Only empty tags are allowed with primary read preference"));
        }
    }
    if let Some(staleness) = field("maxStalenessSeconds") {
        if !staleness.is_number() {
            return Err(wrong_type("readPreference.maxStalenessSeconds", staleness, "long"));
        }
        let seconds = number::as_f64(staleness).unwrap_or_default();
        if seconds < 0.0 {
            return Err(Failure::bad_value(format!(
                "BSON field 'maxStalenessSeconds' value must be >= 0, actual value '{}'",
                ValueText(staleness)
            )));
        }
        if is_primary && seconds >= 1.0 {
            return Err(Failure::bad_value("maxStalenessSeconds can not be set for the primary mode"));
        }
        if (1.0..STALENESS_SECONDS_MIN).contains(&seconds) {
            let message = format!("maxStalenessSeconds value can not be less than {STALENESS_SECONDS_MIN}");
            return Err(Failure::new(ErrorCode::MAX_STALENESS_OUT_OF_RANGE, message));
        }
    }
    Ok(())
}

/// Whether the mode is `primary`.
fn check_mode(preference: DocumentRef<'_>) -> Result<bool> {
    match preference.get("mode") {
        Some(ValueRef::String(mode)) if MODES.contains(&mode) => Ok(mode == "primary"),
        Some(ValueRef::String(mode)) => Err(Failure::bad_value(format!(
            "Enumeration value '{mode}' for field 'readPreference.mode' is not a valid value."
        ))),
        Some(other) => Err(wrong_type("readPreference.mode", other, "string")),
        None => Err(Failure::missing_field("readPreference.mode")),
    }
}
