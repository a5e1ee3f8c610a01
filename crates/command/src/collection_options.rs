//! Options of `create` and `collMod` that nothing stands behind: refused, unless their value asks for nothing.

use crate::invocation::Invocation;
use bunko_bson::{DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

/// Checks the types of those options and refuses each that would have an effect.
/// # Errors
/// `CommandNotSupported` names the option; `TypeMismatch` and `BadValue` where its value is malformed.
pub(crate) fn refuse_unsupported(invocation: &Invocation<'_>, options: &[&str]) -> Result<()> {
    for option in options {
        if let Some(value) = invocation.field(option)
            && !asks_for_nothing(invocation, option, value)?
        {
            return Err(invocation.unsupported(option));
        }
    }
    Ok(())
}

fn asks_for_nothing(invocation: &Invocation<'_>, option: &str, value: ValueRef<'_>) -> Result<bool> {
    Ok(match option {
        "capped" | "dryRun" => !invocation.boolean(option, false)?,
        "clusteredIndex" => matches!(value, ValueRef::Boolean(false)),
        "validator" | "indexOptionDefaults" => invocation.document(option)?.is_none_or(DocumentRef::is_empty),
        "validationLevel" => choice(invocation, option, &["off", "strict", "moderate"])? == Some("strict"),
        "validationAction" => choice(invocation, option, &["error", "warn", "errorAndLog"])? == Some("error"),
        "collation" => is_simple(invocation.document(option)?.unwrap_or(DocumentRef::EMPTY))?,
        "changeStreamPreAndPostImages" => {
            let enabled = invocation.document(option)?.and_then(|images| images.get("enabled"));
            matches!(enabled, Some(ValueRef::Boolean(false)))
        }
        "timeseries" | "encryptedFields" => invocation.document(option)?.is_none(),
        "viewOn" => invocation.string(option)?.is_none(),
        "pipeline" => invocation.array(option)?.is_none(),
        _ => false,
    })
}

/// A string that must be one of a few.
fn choice<'a>(invocation: &Invocation<'a>, option: &str, choices: &[&str]) -> Result<Option<&'a str>> {
    let chosen = invocation.string(option)?;
    match chosen {
        Some(chosen) if !choices.contains(&chosen) => Err(Failure::bad_value(format!(
            "Enumeration value '{chosen}' for field '{}.{option}' is not a valid value.",
            invocation.command.name
        ))),
        _ => Ok(chosen),
    }
}

fn is_simple(collation: DocumentRef<'_>) -> Result<bool> {
    match collation.get("locale") {
        Some(ValueRef::String(locale)) => Ok(locale == "simple"),
        Some(other) => Err(Failure::type_mismatch(format!(
            "BSON field 'collation.locale' is the wrong type '{}', expected type 'string'",
            other.kind().alias()
        ))),
        None => Err(Failure::new(
            ErrorCode::IDL_FAILED_TO_PARSE,
            "BSON field 'collation.locale' is missing but a required field",
        )),
    }
}
