//! `queries` of an encrypted field: the comparisons that searches may use.

use super::{missing, refuse_unknown};
use crate::fields::Fields;
use bunko_bson::{DocumentRef, ValueRef, number, order};
use bunko_errors::{ErrorCode, Failure, Result};

const PLACE: &str = "create.encryptedFields.fields.queries";
const KNOWN: &[&str] = &[
    "queryType",
    "contention",
    "sparsity",
    "min",
    "max",
    "trimFactor",
    "precision",
    "strMaxLength",
    "strMinQueryLength",
    "strMaxQueryLength",
    "caseSensitive",
    "diacriticSensitive",
];
/// Maximum number of query types of one field.
const QUERIES_MAX: usize = 2;

/// The type of a query.
#[derive(Clone, Copy, PartialEq, Eq)]
enum QueryType {
    Equality,
    Range,
    /// Search for a part of a string.
    Text,
}

/// Types without equality queries: equal values may have different bytes, or there is only one value.
const NOT_BY_EQUALITY: &[&str] = &[
    "array",
    "decimal",
    "double",
    "javascriptWithScope",
    "maxKey",
    "minKey",
    "missing",
    "null",
    "object",
    "undefined",
];

/// Checks the queries of a field of that type.
/// # Errors
/// `TypeMismatch`, `BadValue` and `FailedToParse` for malformed values; 9783400 to 9783414 for queries by parts of
/// strings and for several queries; 6412601 for a field without a type; 6338405 for a type without equality queries;
/// 6775201, 6720005, 7018200 and 8574000 for queries by range.
pub(super) fn check(queries: ValueRef<'_>, kind: Option<&str>, path: &str) -> Result<()> {
    let all = match queries {
        ValueRef::Document(query) => vec![query],
        ValueRef::Array(queries) => queries
            .iter()
            .map(|query| query.as_document().ok_or_else(|| mismatch(query)))
            .collect::<Result<Vec<_>>>()?,
        other => return Err(mismatch(other)),
    };
    if kind.is_none() && !all.is_empty() {
        return Err(failure(6_412_601, format!("A field with queries needs a bsonType: '{path}'")));
    }
    let types = all.iter().map(|query| check_one(*query, kind, path)).collect::<Result<Vec<_>>>()?;
    if types.is_empty() {
        return Err(failure(9_783_412, format!("Encrypted field '{path}' must have a query, or no 'queries'")));
    }
    if types.len() > QUERIES_MAX {
        return Err(failure(9_783_413, format!("Encrypted field '{path}' has more than {QUERIES_MAX} query types")));
    }
    if types.len() > 1 && types.iter().any(|query| *query != QueryType::Text) {
        return Err(failure(9_783_414, format!("Encrypted field '{path}' has query types that do not go together")));
    }
    Ok(())
}

fn mismatch(value: ValueRef<'_>) -> Failure {
    Failure::wrong_type(PLACE, value, "types '[array, object]'")
}

fn failure(code: i32, message: String) -> Failure {
    Failure::new(ErrorCode(code), message)
}

fn check_one(body: DocumentRef<'_>, kind: Option<&str>, path: &str) -> Result<QueryType> {
    refuse_unknown(PLACE, body, KNOWN)?;
    let query = Fields::new(PLACE, body);
    let name = query.string("queryType")?.ok_or_else(|| missing(PLACE, "queryType"))?;
    for (field, least) in [
        ("contention", 0),
        ("sparsity", 1),
        ("trimFactor", 0),
        ("precision", 0),
        ("strMaxLength", 1),
        ("strMinQueryLength", 1),
        ("strMaxQueryLength", 1),
    ] {
        check_whole(&query, field, least)?;
    }
    for field in ["caseSensitive", "diacriticSensitive"] {
        query.strict_boolean(field, false)?;
    }
    match name {
        "equality" => match kind.filter(|kind| NOT_BY_EQUALITY.contains(kind)) {
            None => Ok(QueryType::Equality),
            Some(kind) => {
                Err(failure(6_338_405, format!("Type '{kind}' is not a supported equality indexed type: '{path}'")))
            }
        },
        "range" | "rangePreview" => check_range(&query, kind, path).map(|()| QueryType::Range),
        "substringPreview" | "suffixPreview" | "prefixPreview" => {
            check_text(&query, name, kind, path).map(|()| QueryType::Text)
        }
        other => Err(Failure::bad_value(format!(
            "Enumeration value '{other}' for field '{PLACE}.queryType' is not a valid value."
        ))),
    }
}

fn check_whole(query: &Fields<'_>, field: &str, least: i64) -> Result<()> {
    let Some(value) = query.field(field) else { return Ok(()) };
    if !value.is_number() {
        return Err(query.mismatch(field, value, "types '[long, int, decimal, double]'"));
    }
    let Some(whole) = number::as_i64_exact(value) else {
        return Err(Failure::failed_to_parse(format!("BSON field '{PLACE}.{field}' must be a whole number")));
    };
    if whole < least {
        return Err(Failure::bad_value(format!(
            "BSON field '{field}' value must be >= {least}, actual value '{whole}'"
        )));
    }
    Ok(())
}

fn check_text(query: &Fields<'_>, name: &str, kind: Option<&str>, path: &str) -> Result<()> {
    if kind != Some("string") {
        return Err(failure(9_783_400, format!("A query '{name}' takes a field of type string: '{path}'")));
    }
    if name == "substringPreview" && query.field("strMaxLength").is_none() {
        return Err(failure(9_783_401, format!("A query '{name}' needs strMaxLength: '{path}'")));
    }
    for (code, field) in [
        (9_783_402, "strMinQueryLength"),
        (9_783_403, "strMaxQueryLength"),
        (9_783_404, "caseSensitive"),
        (9_783_405, "diacriticSensitive"),
    ] {
        if query.field(field).is_none() {
            return Err(failure(code, format!("A query '{name}' needs {field}: '{path}'")));
        }
    }
    if query.integer("strMinQueryLength")? > query.integer("strMaxQueryLength")? {
        return Err(failure(9_783_406, format!("strMinQueryLength must not be above strMaxQueryLength: '{path}'")));
    }
    Ok(())
}

fn check_range(query: &Fields<'_>, kind: Option<&str>, path: &str) -> Result<()> {
    let bits = match kind {
        Some("int") => 32,
        Some("long" | "date" | "double") => 64,
        Some("decimal") => 128,
        _ => {
            return Err(failure(6_775_201, format!("A query by range takes a field of numbers or dates: '{path}'")));
        }
    };
    if let Some(factor) = query.integer("trimFactor")?.filter(|factor| *factor >= bits) {
        return Err(failure(8_574_000, format!("trimFactor {factor} is not below the {bits} bits of '{path}'")));
    }
    for name in ["min", "max"] {
        if let Some(value) = query.field(name).filter(|value| Some(value.kind().alias()) != kind) {
            let given = value.kind().alias();
            return Err(failure(7_018_200, format!("'{name}' of '{path}' has the type {given}, and not the field's")));
        }
    }
    if let (Some(least), Some(most)) = (query.field("min"), query.field("max"))
        && order::compare(least, most).is_ge()
    {
        return Err(failure(6_720_005, format!("'min' must be below 'max' for a query by range: '{path}'")));
    }
    Ok(())
}
