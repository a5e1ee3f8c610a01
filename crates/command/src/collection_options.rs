//! Options that `create` and `collMod` parse in one way.

use bunko_bson::ValueRef;
use bunko_errors::{Failure, Result};
use bunko_request::fields::{Fields, wrong_type};

/// `changeStreamPreAndPostImages`: whether images are to be kept, if the option is given.
/// # Errors
/// `TypeMismatch`; `IDLUnknownField`; `IDLFailedToParse` without `enabled`.
pub(crate) fn pre_and_post_images(fields: &Fields<'_>) -> Result<Option<bool>> {
    const NAME: &str = "changeStreamPreAndPostImages";
    let Some(images) = fields.document(NAME)? else { return Ok(None) };
    let place = |field: &str| format!("{}.{NAME}.{field}", fields.command);
    let mut enabled = None;
    for element in images {
        enabled = match (element.name, element.value) {
            ("enabled", ValueRef::Boolean(flag)) => Some(flag),
            ("enabled", value) if value.is_nullish() => enabled,
            ("enabled", value) => return Err(wrong_type(&place("enabled"), value, "bool")),
            (name, _) => return Err(Failure::unknown_field(place(name))),
        };
    }
    match enabled {
        Some(enabled) => Ok(Some(enabled)),
        None => Err(Failure::missing_field(place("enabled"))),
    }
}

/// Reads a string option, which is refused unless it is one of `choices`; `None` if it is missing.
pub(crate) fn choice<'a>(fields: &Fields<'a>, option: &str, choices: &[&str]) -> Result<Option<&'a str>> {
    let chosen = fields.string(option)?;
    match chosen {
        Some(chosen) if !choices.contains(&chosen) => Err(Failure::bad_value(format!(
            "Enumeration value '{chosen}' for field '{}.{option}' is not a valid value.",
            fields.command
        ))),
        _ => Ok(chosen),
    }
}
