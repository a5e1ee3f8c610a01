//! Checks of the fields of a configuration that a client sends.

use crate::configuration::replaced;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};

pub(crate) fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(ErrorCode::INVALID_REPLICA_SET_CONFIG, message)
}

/// Checks a field of the member at `place`. In a set of one member, it must be able to become primary.
pub(crate) fn check_member(place: &str, field: &str, value: ValueRef<'_>) -> Result<()> {
    let name = &*format!("{place}.{field}");
    match field {
        "_id" => match number::as_i64_exact(value) {
            Some(0..=255) => Ok(()),
            Some(id) => Err(invalid(format!("_id field value of {id} is out of range"))),
            None => Err(wrong_type(name, value, "int")),
        },
        "host" => text(name, value),
        "votes" => only(name, value, number::as_f64(value) == Some(1.0), "1"),
        "priority" => {
            let priority = number::as_f64(value).ok_or_else(|| wrong_type(name, value, "double"))?;
            let is_electable = priority > 0.0 && priority <= 1000.0;
            only(name, value, is_electable, "above 0 and at most 1000: the only member must be electable")
        }
        "arbiterOnly" | "hidden" => {
            let is_off = !bunko_request::fields::truth(value);
            only(name, value, is_off, "false: the only member must be electable")
        }
        "buildIndexes" => only(name, value, bunko_request::fields::truth(value), "true"),
        "secondaryDelaySecs" => only(name, value, number::as_f64(value) == Some(0.0), "0"),
        "tags" => match value.as_document() {
            Some(tags) => tags.iter().try_for_each(|tag| text(&format!("{name}.{}", tag.name), tag.value)),
            None => Err(wrong_type(name, value, "object")),
        },
        _ => Err(unknown("member", field)),
    }
}

pub(crate) fn unknown(place: &str, field: &str) -> Failure {
    invalid(format!("Unexpected field {field} in replica set {place}"))
}

pub(crate) fn wrong_type(field: &str, value: ValueRef<'_>, expected: &str) -> Failure {
    let kind = value.kind().alias();
    Failure::type_mismatch(format!("\"{field}\" had the wrong type. Expected {expected}, found {kind}"))
}

pub(crate) fn text(field: &str, value: ValueRef<'_>) -> Result<()> {
    match value.as_str() {
        Some("") => Err(invalid(format!("{field} may not be empty"))),
        Some(_) => Ok(()),
        None => Err(wrong_type(field, value, "string")),
    }
}

pub(crate) fn integer(field: &str, value: ValueRef<'_>) -> Result<()> {
    number::as_i64_exact(value).map(drop).ok_or_else(|| wrong_type(field, value, "int"))
}

/// Refuses a value unless `is_it` holds.
pub(crate) fn only(field: &str, value: ValueRef<'_>, is_it: bool, expected: &str) -> Result<()> {
    if is_it {
        return Ok(());
    }
    let value = bunko_bson::text::ValueText(value);
    Err(invalid(format!("{field} is {value} and must be {expected}")))
}

/// `below`, with the fields of `above` in their places. `check` checks each field of `above`.
pub(crate) fn overlaid(
    below: DocumentRef<'_>,
    above: DocumentRef<'_>,
    place: &str,
    check: impl Fn(&str, ValueRef<'_>) -> Result<()>,
) -> Result<DocumentBuf> {
    let mut named = std::collections::HashSet::new();
    for element in above {
        if !named.insert(element.name) {
            return Err(invalid(format!("{place} names {} twice", element.name)));
        }
        check(element.name, element.value)?;
    }
    let fields: Vec<_> = above.iter().map(|element| (element.name, element.value)).collect();
    Ok(replaced(below, &fields))
}
