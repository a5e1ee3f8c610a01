//! Options of `create` and `collMod` that nothing stands behind: refused, unless their value asks for nothing.

use crate::fields::wrong_type;
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
        "clusteredIndex" => matches!(value, ValueRef::Boolean(false)),
        "indexOptionDefaults" => invocation.document(option)?.is_none_or(DocumentRef::is_empty),
        "timeseries" | "encryptedFields" => invocation.document(option)?.is_none(),
        "viewOn" => invocation.string(option)?.is_none(),
        "pipeline" => invocation.array(option)?.is_none(),
        _ => false,
    })
}

/// `changeStreamPreAndPostImages`: whether they are to be kept, if anything is said.
/// # Errors
/// `TypeMismatch`; `IDLUnknownField`; `IDLFailedToParse` where it does not say.
pub(crate) fn pre_and_post_images(invocation: &Invocation<'_>) -> Result<Option<bool>> {
    const NAME: &str = "changeStreamPreAndPostImages";
    let Some(images) = invocation.document(NAME)? else { return Ok(None) };
    let place = |field: &str| format!("{}.{NAME}.{field}", invocation.command.name);
    let mut enabled = None;
    for element in images {
        enabled = match (element.name, element.value) {
            ("enabled", ValueRef::Boolean(flag)) => Some(flag),
            ("enabled", value) if value.is_nullish() => enabled,
            ("enabled", value) => return Err(wrong_type(&place("enabled"), value, "bool")),
            (name, _) => {
                let message = format!("BSON field '{}' is an unknown field.", place(name));
                return Err(Failure::new(ErrorCode::IDL_UNKNOWN_FIELD, message));
            }
        };
    }
    match enabled {
        Some(enabled) => Ok(Some(enabled)),
        None => Err(Failure::new(
            ErrorCode::IDL_FAILED_TO_PARSE,
            format!("BSON field '{}' is missing but a required field", place("enabled")),
        )),
    }
}

/// A string that must be one of a few.
pub(crate) fn choice<'a>(invocation: &Invocation<'a>, option: &str, choices: &[&str]) -> Result<Option<&'a str>> {
    let chosen = invocation.string(option)?;
    match chosen {
        Some(chosen) if !choices.contains(&chosen) => Err(Failure::bad_value(format!(
            "Enumeration value '{chosen}' for field '{}.{option}' is not a valid value.",
            invocation.command.name
        ))),
        _ => Ok(chosen),
    }
}
