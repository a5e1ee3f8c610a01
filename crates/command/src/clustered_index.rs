//! `clusteredIndex` of `create`: a collection whose natural order is the order of `_id`.

use crate::capped_options::CappedOptions;
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentBuf, DocumentRef, Type, ValueRef, number};
use bunko_catalog::ID_INDEX;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::fields::{Fields, wrong_type};

const NAME: &str = "clusteredIndex";

/// The types that the option may have.
pub(crate) const TYPES: &[Type] =
    &[Type::Boolean, Type::Int64, Type::Int32, Type::Decimal128, Type::Double, Type::Document];

/// The stored form of the option, as `listCollections` shows it; `None` if no clustered collection is requested.
/// # Errors
/// `TypeMismatch`, 40414 and `IDLUnknownField` for malformed options; 5979703 for `true` instead of a document, 5979700
/// if it is not unique, 5979704 for a version other than 2, `InvalidIndexSpecificationOption` for a key other than
/// `{_id: 1}`; 6049200, 6049204, 6127800 and `InvalidOptions` for options that contradict it.
pub(crate) fn parse(fields: &Fields<'_>, capped: CappedOptions) -> Result<Option<DocumentBuf>> {
    let Some(value) = fields.value(NAME) else { return Ok(None) };
    if !value.is_nullish() {
        check_not_capped(capped)?;
    }
    let spec = match value {
        ValueRef::Document(spec) => spec,
        ValueRef::Boolean(false) => return Ok(None),
        value if number::as_f64(value) == Some(0.0) => return Ok(None),
        value if value.is_number() || matches!(value, ValueRef::Boolean(_)) => {
            let message = "The 'clusteredIndex' option takes a document with 'key' and 'unique'";
            return Err(Failure::new(ErrorCode(5_979_703), message));
        }
        value => return Err(fields.mismatch(NAME, value, "types '[bool, object]'")),
    };
    let parsed = read(spec)?;
    if fields.field("idIndex").is_some() {
        let message = "The 'clusteredIndex' option is not supported with the 'idIndex' option";
        return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
    }
    Ok(Some(parsed))
}

/// # Errors
/// 6049200, 6049204 and 6127800 for the options of capped collections.
fn check_not_capped(capped: CappedOptions) -> Result<()> {
    let refused = |code, option: &str| {
        let message = format!("The '{option}' option cannot be used with a clustered collection");
        Err(Failure::new(ErrorCode(code), message))
    };
    if capped.size.is_some() {
        return refused(6_049_200, "size");
    }
    if capped.documents.is_some() {
        return refused(6_049_204, "max");
    }
    if capped.is_capped { refused(6_127_800, "capped") } else { Ok(()) }
}

fn read(spec: DocumentRef<'_>) -> Result<DocumentBuf> {
    let place = |field: &str| format!("create.{NAME}.{field}");
    let (mut key, mut is_unique, mut name, mut version) = (None, None, ID_INDEX, 2);
    for element in spec {
        let value = element.value;
        match element.name {
            "key" | "unique" | "name" | "v" if value.is_nullish() => {}
            "key" => key = Some(value.as_document().ok_or_else(|| wrong_type(&place("key"), value, "object"))?),
            "unique" => {
                let flag = match value {
                    ValueRef::Boolean(flag) => Some(flag),
                    value => number::as_f64(value).map(|number| number != 0.0),
                };
                is_unique = Some(flag.ok_or_else(|| wrong_type(&place("unique"), value, "bool"))?);
            }
            "name" => name = value.as_str().ok_or_else(|| wrong_type(&place("name"), value, "string"))?,
            "v" => version = number::clamp_to_i64(value).ok_or_else(|| wrong_type(&place("v"), value, "int"))?,
            other => return Err(Failure::unknown_field(place(other))),
        }
    }
    let missing = |field: &str| Failure::missing_field(place(field));
    let key = key.ok_or_else(|| missing("key"))?;
    if !is_unique.ok_or_else(|| missing("unique"))? {
        return Err(Failure::new(ErrorCode(5_979_700), "The clustered index must be unique: 'unique: true'"));
    }
    if version != 2 {
        return Err(Failure::new(
            ErrorCode(5_979_704),
            format!("The clustered index must have v: 2, not v: {version}"),
        ));
    }
    let is_by_id = key.count() == 1 && key.get("_id").and_then(number::as_f64) == Some(1.0);
    if !is_by_id {
        let message = format!("The clustered index must have the key {{ _id: 1 }}, not {}", ValueText(key.into()));
        return Err(Failure::new(ErrorCode::INVALID_INDEX_SPECIFICATION_OPTION, message));
    }
    let key = DocumentBuf::new().with("_id", 1_i32);
    Ok(DocumentBuf::new().with("v", 2_i32).with("key", &key).with("name", name).with("unique", true))
}
