//! Checks the operands of keywords, with MongoDB's error codes.

use super::Schema;
use super::keywords::Keywords;
use crate::integer;
use bunko_bson::{ArrayRef, DocumentRef, ValueRef};
use bunko_errors::{Failure, Result};
use std::collections::BTreeSet;

fn mismatch(name: &str, wanted: &str, value: ValueRef<'_>) -> Failure {
    let kind = value.kind().alias();
    Failure::type_mismatch(format!(
        "$jsonSchema keyword '{name}' must be {wanted}, but found an element of type {kind}"
    ))
}

/// The string operand of a keyword.
/// # Errors
/// `TypeMismatch`.
pub(super) fn string<'a>(keywords: &Keywords<'a>, name: &str) -> Result<Option<&'a str>> {
    match keywords.get(name) {
        None => Ok(None),
        Some(ValueRef::String(text)) => Ok(Some(text)),
        Some(value) => Err(mismatch(name, "a string", value)),
    }
}

/// The boolean operand of a keyword.
/// # Errors
/// `TypeMismatch`.
pub(super) fn boolean(keywords: &Keywords<'_>, name: &str) -> Result<Option<bool>> {
    match keywords.get(name) {
        None => Ok(None),
        Some(ValueRef::Boolean(flag)) => Ok(Some(flag)),
        Some(value) => Err(mismatch(name, "a boolean", value)),
    }
}

/// The numeric operand of a keyword.
/// # Errors
/// `TypeMismatch`.
pub(super) fn number<'a>(keywords: &Keywords<'a>, name: &str) -> Result<Option<ValueRef<'a>>> {
    match keywords.get(name) {
        Some(value) if !value.is_number() => Err(mismatch(name, "a number", value)),
        value => Ok(value),
    }
}

/// The operand of a keyword as a whole number that is not negative.
/// # Errors
/// `FailedToParse`.
pub(super) fn size(keywords: &Keywords<'_>, name: &str) -> Result<Option<u64>> {
    let Some(value) = keywords.get(name) else { return Ok(None) };
    integer::non_negative(name, value).map(Some).map_err(Failure::failed_to_parse)
}

/// The document operand of a keyword.
/// # Errors
/// `TypeMismatch`.
pub(super) fn document<'a>(keywords: &Keywords<'a>, name: &str) -> Result<Option<DocumentRef<'a>>> {
    match keywords.get(name) {
        None => Ok(None),
        Some(ValueRef::Document(document)) => Ok(Some(document)),
        Some(value) => Err(mismatch(name, "an object", value)),
    }
}

/// The array operand of a keyword; it must not be empty.
/// # Errors
/// `TypeMismatch`; `FailedToParse` for an empty one.
pub(super) fn array<'a>(keywords: &Keywords<'a>, name: &str) -> Result<Option<ArrayRef<'a>>> {
    match keywords.get(name) {
        None => Ok(None),
        Some(ValueRef::Array(list)) if list.is_empty() => {
            Err(Failure::failed_to_parse(format!("$jsonSchema keyword '{name}' must be a non-empty array")))
        }
        Some(ValueRef::Array(list)) => Ok(Some(list)),
        Some(value) => Err(mismatch(name, "an array", value)),
    }
}

/// The strings of an array, which must be distinct.
/// # Errors
/// `TypeMismatch` for another element; `FailedToParse` for an empty array or a duplicate string.
pub(super) fn distinct_strings<'a>(name: &str, list: ArrayRef<'a>) -> Result<Vec<&'a str>> {
    if list.is_empty() {
        let message = format!("$jsonSchema keyword '{name}' cannot be an empty array");
        return Err(Failure::failed_to_parse(message));
    }
    let (mut strings, mut known) = (Vec::new(), BTreeSet::new());
    for value in list.iter() {
        let ValueRef::String(text) = value else { return Err(mismatch(name, "an array of strings", value)) };
        if !known.insert(text) {
            let message = format!("$jsonSchema keyword '{name}' array cannot contain duplicate values: {text}");
            return Err(Failure::failed_to_parse(message));
        }
        strings.push(text);
    }
    Ok(strings)
}

/// The schemas of an array.
/// # Errors
/// `TypeMismatch` for another element; errors of parsing the schemas.
pub(super) fn schemas(keywords: &Keywords<'_>, name: &str, list: ArrayRef<'_>) -> Result<Vec<Schema>> {
    let schema = |value| match value {
        ValueRef::Document(schema) => keywords.schema(schema),
        value => Err(mismatch(name, "an array of objects", value)),
    };
    list.iter().map(schema).collect()
}

/// The demand on elements or fields that no other keyword covers.
#[derive(Debug)]
pub(super) enum Additional {
    /// `false`: none are allowed.
    Refused,
    /// Additional elements or fields must satisfy a schema.
    Schema(Schema),
}

/// The operand of `additionalItems` or `additionalProperties`; `None` if absent or `true`.
/// # Errors
/// `TypeMismatch`; errors of parsing the schema.
pub(super) fn additional(keywords: &Keywords<'_>, name: &str) -> Result<Option<Additional>> {
    match keywords.get(name) {
        None | Some(ValueRef::Boolean(true)) => Ok(None),
        Some(ValueRef::Boolean(false)) => Ok(Some(Additional::Refused)),
        Some(ValueRef::Document(schema)) => Ok(Some(Additional::Schema(keywords.schema(schema)?))),
        Some(value) => Err(mismatch(name, "either an object or a boolean", value)),
    }
}
