//! Queryable encryption: collections whose fields clients encrypt before they send them.
//!
//! A field that nobody searches by is the clients' matter: the server keeps it and sees to it that nothing else is written
//! there (`EncryptedFields` of the catalog). Fields that are searched by (`queries`) take tokens that the server reckons with
//! and collections of its own; they are not built, and refused by name: to keep such values as they come would let all
//! searches find nothing.
//! Source: MongoDB manual, "Encrypted Collections", "Queryable Encryption: encryptedFieldsMap".

mod query;

use crate::fields::Fields;
use crate::invocation::Invocation;
use crate::replica_set::Deployment;
use bunko_bson::{ArrayRef, BinarySubtype, DocumentRef, ValueRef, number};
use bunko_catalog::EncryptedFields;
use bunko_errors::{ErrorCode, Failure, Result};

const PLACE: &str = "create.encryptedFields";
/// Types that cannot be encrypted: there is only one value of each, or it has no type to be found by.
const TYPES_REFUSED: &[&str] =
    &["double", "decimal", "object", "array", "bool", "minKey", "maxKey", "null", "undefined"];

/// Commands that clients tell in `encryptionInformation` what is encrypted.
const TAKES_INFORMATION: &[&str] =
    &["aggregate", "count", "delete", "distinct", "find", "findAndModify", "insert", "update"];

/// The option of `create`, where it is given.
/// # Errors
/// What is wrong with it; 6346402 on a server that is no member of a set; `CommandNotSupported` for fields that are
/// searched by.
pub(crate) fn of_collection<'a>(invocation: &Invocation<'a>) -> Result<Option<DocumentRef<'a>>> {
    let Some(option) = invocation.document("encryptedFields")? else { return Ok(None) };
    check(option)?;
    if invocation.boolean("capped", false)? {
        let message = "Encrypted collections cannot be capped: 'encryptedFields' is not allowed with 'capped'";
        return Err(Failure::new(ErrorCode(6_367_301), message));
    }
    check_deployment(invocation.service.deployment())?;
    if has_searched(option) {
        return Err(Failure::not_supported_yet("'encryptedFields' with 'queries'"));
    }
    Ok(Some(option))
}

fn check_deployment(deployment: Deployment) -> Result<()> {
    match deployment {
        Deployment::SetMember => Ok(()),
        Deployment::Standalone => {
            Err(Failure::new(ErrorCode(6_346_402), "Encrypted collections are not supported on standalone"))
        }
    }
}

/// Whether a field is searched by.
fn has_searched(option: DocumentRef<'_>) -> bool {
    let fields = option.get("fields").and_then(ValueRef::as_array).unwrap_or(ArrayRef::EMPTY);
    fields.iter().filter_map(ValueRef::as_document).any(|field| field.get("queries").is_some())
}

/// Whether a command may be told what is encrypted.
pub(crate) fn takes_information(command: &str) -> bool {
    TAKES_INFORMATION.contains(&command)
}

/// Checks what a client says that it has encrypted. With no field that is searched by there is nothing else to do about it.
/// # Errors
/// What is wrong with it; `CommandNotSupported` for fields that are searched by.
pub(crate) fn check_information(deployment: Deployment, command: &str, information: DocumentRef<'_>) -> Result<()> {
    const PLACE: &str = "encryptionInformation";
    check_deployment(deployment)?;
    let place = format!("{command}.{PLACE}");
    refuse_unknown(&place, information, &["type", "schema", "deleteTokens", "crudProcessed"])?;
    let information = Fields::new(PLACE, information);
    match information.field("type") {
        None => return Err(missing(&place, "type")),
        Some(kind) if number::as_i64_exact(kind) == Some(1) => {}
        Some(_) => return Err(Failure::bad_value(format!("'{place}.type' must be 1"))),
    }
    let schema = information.document("schema")?.ok_or_else(|| missing(&place, "schema"))?;
    for (name, option) in schema.iter().map(|collection| (collection.name, collection.value)) {
        let option = option.as_document();
        let option =
            option.ok_or_else(|| Failure::type_mismatch(format!("'{place}.schema.{name}' must be an object")))?;
        check(option)?;
        if has_searched(option) {
            return Err(Failure::not_supported_yet("'encryptionInformation' with 'queries'"));
        }
    }
    Ok(())
}

/// Refuses an index over an encrypted field, which would be over ciphertext.
/// # Errors
/// 6346502.
pub(crate) fn check_index(encrypted: &EncryptedFields, key: DocumentRef<'_>) -> Result<()> {
    for path in key.iter().map(|field| field.name) {
        if let Some(other) = encrypted.paths().find(|other| is_within(path, other) || is_within(other, path)) {
            let message = format!("Index not allowed on, or a prefix of, the encrypted field {other}");
            return Err(Failure::new(ErrorCode(6_346_502), message));
        }
    }
    Ok(())
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
