//! The option `encryptedFields` of a collection, and `encryptionInformation` of a command that writes to one.
//! Source: MongoDB manual, "Encrypted Collections", "Queryable Encryption: encryptedFieldsMap".

mod query;

use crate::deployment::Deployment;
use crate::fields::Fields;
use bunko_bson::{ArrayRef, BinarySubtype, DocumentRef, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};

const PLACE: &str = "create.encryptedFields";
/// Types that can be encrypted.
const TYPES: &[&str] = &[
    "array",
    "binData",
    "bool",
    "date",
    "dbPointer",
    "decimal",
    "double",
    "int",
    "javascript",
    "javascriptWithScope",
    "long",
    "object",
    "objectId",
    "regex",
    "string",
    "symbol",
    "timestamp",
];
/// Types with at most one value each, so that encryption would hide nothing.
const TYPES_OF_ONE_VALUE: &[&str] = &["minKey", "maxKey", "missing", "null", "undefined"];

/// Checks that the server can have encrypted collections.
/// # Errors
/// 6346402 on a server that is not a member of a set.
pub fn check_deployment(deployment: Deployment) -> Result<()> {
    match deployment {
        Deployment::SetMember => Ok(()),
        Deployment::Standalone => {
            Err(Failure::new(ErrorCode(6_346_402), "Encrypted collections are not supported on standalone"))
        }
    }
}

/// Whether the option has a field with `queries`, by which clients can search it.
fn has_searched(option: DocumentRef<'_>) -> bool {
    let fields = option.get("fields").and_then(ValueRef::as_array).unwrap_or(ArrayRef::EMPTY);
    fields.iter().filter_map(ValueRef::as_document).any(|field| field.get("queries").is_some())
}

/// Checks `encryptionInformation`. If no field can be searched, the server has nothing else to do.
/// # Errors
/// Errors of the option; `CommandNotSupported` for fields that can be searched.
pub fn check_information(deployment: Deployment, command: &str, information: DocumentRef<'_>) -> Result<()> {
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

/// Checks the option of a collection.
/// # Errors
/// Errors of its fields.
pub fn check(option: DocumentRef<'_>) -> Result<()> {
    let option = Fields::new(PLACE, option);
    let known = ["escCollection", "ecocCollection", "fields", "strEncodeVersion", "eccCollection"];
    refuse_unknown(PLACE, option.body, &known)?;
    for name in ["escCollection", "ecocCollection", "eccCollection"] {
        option.string(name)?;
    }
    if let Some(version) = option.field("strEncodeVersion").filter(|version| !matches!(version, ValueRef::Int32(_))) {
        return Err(option.mismatch("strEncodeVersion", version, "type 'int'"));
    }
    let fields = option.array("fields")?.ok_or_else(|| missing(PLACE, "fields"))?;
    let fields = fields
        .iter()
        .map(|field| match field.as_document() {
            Some(field) => EncryptedField::parse(field),
            None => Err(option.mismatch("fields", field, "type 'object'")),
        })
        .collect::<Result<Vec<_>>>()?;
    for (number, field) in fields.iter().enumerate() {
        field.check_among(&fields[..number])?;
        field.check_kind()?;
    }
    Ok(())
}

/// Whether a path equals another one, or leads through it.
pub fn is_within(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// An element of `fields`.
struct EncryptedField<'a> {
    key: &'a [u8],
    path: &'a str,
    kind: Option<&'a str>,
    queries: Option<ValueRef<'a>>,
}

impl<'a> EncryptedField<'a> {
    fn parse(body: DocumentRef<'a>) -> Result<Self> {
        let place = "create.encryptedFields.fields";
        refuse_unknown(place, body, &["keyId", "path", "bsonType", "queries"])?;
        let field = Fields::new(place, body);
        let key = match field.field("keyId") {
            None => return Err(missing(place, "keyId")),
            Some(ValueRef::Binary { subtype, bytes }) if subtype == BinarySubtype::UUID => bytes,
            Some(other) => return Err(field.mismatch("keyId", other, "type 'binData' of subtype UUID")),
        };
        if key.len() != 16 {
            let message =
                format!("uuid must be a 16-byte binary field with UUID (4) subtype, and has {} bytes", key.len());
            return Err(Failure::new(ErrorCode::INVALID_UUID, message));
        }
        let path = field.string("path")?.ok_or_else(|| missing(place, "path"))?;
        Ok(Self { key, path, kind: field.string("bsonType")?, queries: body.get("queries") })
    }

    /// Checks the field's key and path against the fields before it.
    fn check_among(&self, before: &[Self]) -> Result<()> {
        let path = self.path;
        if before.iter().any(|other| other.key == self.key) {
            return Err(Failure::new(ErrorCode(6_338_401), "Duplicate key ids are not allowed"));
        }
        if path.is_empty() || path.split('.').any(str::is_empty) {
            return Err(Failure::new(ErrorCode(6_316_402), "Encrypted field must have a non-empty path"));
        }
        if is_within(path, "_id") {
            return Err(Failure::new(ErrorCode(6_316_403), "Cannot encrypt _id or its subfields"));
        }
        let mut others = before.iter().map(|other| other.path);
        if let Some(other) = others.find(|other| is_within(path, other) || is_within(other, path)) {
            let code = if other == path { 6_338_402 } else { 6_338_403 };
            return Err(Failure::new(ErrorCode(code), format!("Conflicting encrypted fields: '{path}' and '{other}'")));
        }
        Ok(())
    }

    /// Checks the field's type and its queries.
    fn check_kind(&self) -> Result<()> {
        if let Some(kind) = self.kind.filter(|kind| !TYPES.contains(kind) && !TYPES_OF_ONE_VALUE.contains(kind)) {
            return Err(Failure::bad_value(format!("Unknown type name: {kind}")));
        }
        match (self.queries, self.kind) {
            (Some(queries), kind) => query::check(queries, kind, self.path),
            (None, Some(kind)) if !TYPES.contains(&kind) => {
                let message = format!("Type '{kind}' is not a supported unindexed type: '{}'", self.path);
                Err(Failure::new(ErrorCode(6_338_406), message))
            }
            (None, _) => Ok(()),
        }
    }
}

fn refuse_unknown(place: &str, document: DocumentRef<'_>, known: &[&str]) -> Result<()> {
    match document.iter().find(|element| !known.contains(&element.name)) {
        None => Ok(()),
        Some(other) => Err(Failure::unknown_field(format_args!("{place}.{}", other.name))),
    }
}

fn missing(place: &str, field: &str) -> Failure {
    Failure::missing_field(format_args!("{place}.{field}"))
}
