//! `encryptedFields` of `create`: what clients encrypt. It is checked as on MongoDB, and then refused as MongoDB refuses it on
//! a server that is no member of a replica set.
//! Source: MongoDB manual, "Encrypted Collections", "Queryable Encryption: encryptedFieldsMap".

mod query;

use crate::fields::Fields;
use crate::invocation::Invocation;
use bunko_bson::{BinarySubtype, DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

const PLACE: &str = "create.encryptedFields";
/// Types that cannot be encrypted: there is only one value of each, or it has no type to be found by.
const TYPES_REFUSED: &[&str] =
    &["double", "decimal", "object", "array", "bool", "minKey", "maxKey", "null", "undefined"];

/// Checks the option, and refuses it.
/// # Errors
/// What is wrong with it; else 6346402.
pub(crate) fn refuse(invocation: &Invocation<'_>) -> Result<()> {
    let Some(option) = invocation.document("encryptedFields")? else { return Ok(()) };
    check(option)?;
    if invocation.boolean("capped", false)? {
        let message = "Encrypted collections cannot be capped: 'encryptedFields' is not allowed with 'capped'";
        return Err(Failure::new(ErrorCode(6_367_301), message));
    }
    Err(Failure::new(ErrorCode(6_346_402), "Encrypted collections are not supported on standalone"))
}

fn check(option: DocumentRef<'_>) -> Result<()> {
    let option = Fields::new(PLACE, option);
    let known = ["escCollection", "ecocCollection", "fields", "strEncodeVersion", "eccCollection"];
    refuse_unknown(PLACE, option.body, &known)?;
    for name in ["escCollection", "ecocCollection", "eccCollection"] {
        option.string(name)?;
    }
    let fields = option.array("fields")?.ok_or_else(|| missing(PLACE, "fields"))?;
    let mut paths: Vec<&str> = Vec::new();
    for field in fields.iter() {
        let field = field.as_document().ok_or_else(|| option.mismatch("fields", field, "type 'object'"))?;
        let path = check_field(field)?;
        if let Some(other) = paths.iter().find(|other| is_within(path, other) || is_within(other, path)) {
            let code = if *other == path { 6_338_402 } else { 6_338_403 };
            return Err(Failure::new(ErrorCode(code), format!("Conflicting encrypted fields: '{path}' and '{other}'")));
        }
        paths.push(path);
    }
    Ok(())
}

/// Whether a path is another one, or leads through it.
fn is_within(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn check_field(body: DocumentRef<'_>) -> Result<&str> {
    let place = "create.encryptedFields.fields";
    refuse_unknown(place, body, &["keyId", "path", "bsonType", "queries"])?;
    let field = Fields::new(place, body);
    match field.field("keyId") {
        None => return Err(missing(place, "keyId")),
        Some(ValueRef::Binary { subtype, .. }) if subtype == BinarySubtype::UUID => {}
        Some(other) => return Err(field.mismatch("keyId", other, "type 'binData' of subtype UUID")),
    }
    let path = field.string("path")?.ok_or_else(|| missing(place, "path"))?;
    if path.is_empty() || path.split('.').any(str::is_empty) {
        return Err(Failure::new(ErrorCode(6_316_402), "Encrypted field must have a non-empty path"));
    }
    if is_within(path, "_id") {
        return Err(Failure::new(ErrorCode(6_316_403), "Cannot encrypt _id or its subfields"));
    }
    let kind = field.string("bsonType")?;
    let queries = body.get("queries");
    if let Some(kind) = kind.filter(|kind| TYPES_REFUSED.contains(kind) && !query::is_range(queries)) {
        let message = format!("Type '{kind}' is not a supported encrypted type: '{path}'");
        return Err(Failure::new(ErrorCode(6_338_406), message));
    }
    if let Some(queries) = queries {
        query::check(queries, kind, path)?;
    }
    Ok(path)
}

fn refuse_unknown(place: &str, document: DocumentRef<'_>, known: &[&str]) -> Result<()> {
    match document.iter().find(|element| !known.contains(&element.name)) {
        None => Ok(()),
        Some(other) => {
            let message = format!("BSON field '{place}.{}' is an unknown field.", other.name);
            Err(Failure::new(ErrorCode::IDL_UNKNOWN_FIELD, message))
        }
    }
}

fn missing(place: &str, field: &str) -> Failure {
    let message = format!("BSON field '{place}.{field}' is missing but a required field");
    Failure::new(ErrorCode::IDL_FAILED_TO_PARSE, message)
}
