//! `idIndex` and `autoIndexId` of `create`. The index on `_id` is always created; only its displayed version can
//! differ.

use bunko_bson::text::ValueText;
use bunko_bson::{DocumentRef, StringOrder, ValueRef, number, order};
use bunko_catalog::{IndexSpec, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::fields::Fields;

/// Checks that the options ask for no other index, and returns the requested version. `strings` is the collection's
/// string order.
/// # Errors
/// `FailedToParse` if key or name is missing, `TypeMismatch`; `BadValue` for another key or collation,
/// `CannotCreateIndex` for an empty name or another version, `InvalidIndexSpecificationOption` for other options;
/// `InvalidOptions` for both options, 50001 or `CommandNotSupported` for `autoIndexId: false`.
pub(crate) fn check(fields: &Fields<'_>, namespace: &Namespace, strings: &StringOrder) -> Result<Option<i32>> {
    check_is_wanted(fields, namespace)?;
    let Some(spec) = fields.document("idIndex")? else { return Ok(None) };
    if fields.field("autoIndexId").is_some() {
        let message = format!("'idIndex' is not allowed with 'autoIndexId': {}", ValueText(spec.into()));
        return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
    }
    let key = required(spec, "key")?;
    let Some(pattern) = key.as_document() else { return Err(wrong_type(spec, "key", "object", key)) };
    let own = IndexSpec::id();
    if !order::equal(pattern.into(), own.key_pattern().into()) {
        return Err(Failure::bad_value(format!(
            "The field 'key' for an _id index must be {{_id: 1}}, but got {}",
            ValueText(key)
        )));
    }
    let name = required(spec, "name")?;
    match name.as_str() {
        None => return Err(wrong_type(spec, "name", "string", name)),
        Some("") => return Err(cannot_create("index name cannot be empty".to_owned())),
        Some(_) => {}
    }
    spec.iter().try_for_each(|element| check_option(spec, element.name, element.value, strings))?;
    Ok(spec.get("v").and_then(number::as_i64_exact).and_then(|version| i32::try_from(version).ok()))
}

/// Only collections that are not replicated may lack the index, which this server does not support.
fn check_is_wanted(fields: &Fields<'_>, namespace: &Namespace) -> Result<()> {
    if fields.boolean("autoIndexId", true)? {
        return Ok(());
    }
    if namespace.database() == "local" {
        return Err(fields.unsupported("autoIndexId: false"));
    }
    let message = format!("autoIndexId: false is not allowed for {namespace}, which can be replicated");
    Err(Failure::new(ErrorCode(50001), message))
}

fn required<'a>(spec: DocumentRef<'a>, field: &str) -> Result<ValueRef<'a>> {
    spec.get(field).ok_or_else(|| {
        let text = ValueText(spec.into());
        Failure::failed_to_parse(format!(
            "The '{field}' field is a required property of an index specification: {text}"
        ))
    })
}

fn check_option(spec: DocumentRef<'_>, name: &str, value: ValueRef<'_>, strings: &StringOrder) -> Result<()> {
    match name {
        "key" | "name" | "ns" => Ok(()),
        "v" if !value.is_number() => Err(wrong_type(spec, "v", "number", value)),
        "v" => match number::as_i64_exact(value) {
            Some(1 | 2) => Ok(()),
            Some(version) => Err(cannot_create(format!(
                "Invalid index specification {}; cannot create an index with v={version}",
                ValueText(spec.into())
            ))),
            None => Err(Failure::bad_value(format!(
                "Index version must be representable as a 32-bit integer, but got {}",
                ValueText(value)
            ))),
        },
        "collation" => match value.as_document() {
            Some(collation) if bunko_collation::parse(collation)? == *strings => Ok(()),
            Some(_) => Err(Failure::bad_value("The _id index must have the same collation as the collection.")),
            None => Err(wrong_type(spec, "collation", "object", value)),
        },
        other => Err(Failure::new(
            ErrorCode::INVALID_INDEX_SPECIFICATION_OPTION,
            format!(
                "The field '{other}' is not valid for an _id index specification. Specification: {}",
                ValueText(spec.into())
            ),
        )),
    }
}

fn wrong_type(spec: DocumentRef<'_>, field: &str, expected: &str, value: ValueRef<'_>) -> Failure {
    Failure::type_mismatch(format!(
        "The field '{field}' must be of type {expected}, but got {}. Specification: {}",
        value.kind().alias(),
        ValueText(spec.into())
    ))
}

fn cannot_create(message: String) -> Failure {
    Failure::new(ErrorCode::CANNOT_CREATE_INDEX, message)
}
