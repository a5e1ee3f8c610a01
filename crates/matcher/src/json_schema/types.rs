//! `type` and `bsonType`.

use super::keywords::Keywords;
use super::{Rule, failed};
use crate::evaluation::Evaluation;
use crate::operands::TypeSet;
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_errors::{Failure, Result};

/// JSON's type names and the BSON ones. Source: MongoDB manual, "$jsonSchema", "Available Keywords".
const JSON_TYPES: &[(&str, &str)] = &[
    ("array", "array"),
    ("boolean", "bool"),
    ("null", "null"),
    ("number", "number"),
    ("object", "object"),
    ("string", "string"),
];

#[derive(Debug)]
struct OneOf {
    name: &'static str,
    specified: DocumentBuf,
    types: TypeSet,
}

/// The rule for the type of the value, if the schema has one.
pub(super) fn parse(keywords: &Keywords<'_>) -> Result<Option<Box<dyn Rule>>> {
    let (name, value) = match (keywords.get("type"), keywords.get("bsonType")) {
        (None, None) => return Ok(None),
        (Some(value), None) => ("type", value),
        (None, Some(value)) => ("bsonType", value),
        (Some(_), Some(_)) => {
            let message = "Cannot specify both $jsonSchema keywords 'type' and 'bsonType'";
            return Err(Failure::failed_to_parse(message));
        }
    };
    let specified = DocumentBuf::new().with(name, value);
    Ok(Some(Box::new(OneOf { name, specified, types: types(name, value)? })))
}

fn types(name: &str, value: ValueRef<'_>) -> Result<TypeSet> {
    let mut types = TypeSet::default();
    match value {
        ValueRef::String(alias) => insert(&mut types, name, alias)?,
        ValueRef::Array(list) => {
            if list.is_empty() {
                let message = format!("$jsonSchema keyword '{name}' must name at least one type");
                return Err(Failure::failed_to_parse(message));
            }
            for value in list.iter() {
                let ValueRef::String(alias) = value else {
                    let message = format!("$jsonSchema keyword '{name}' array elements must be strings");
                    return Err(Failure::type_mismatch(message));
                };
                insert(&mut types, name, alias)?;
            }
        }
        _ => {
            let message = format!("$jsonSchema keyword '{name}' must be either a string or an array of strings");
            return Err(Failure::type_mismatch(message));
        }
    }
    Ok(types)
}

fn insert(types: &mut TypeSet, name: &str, alias: &str) -> Result<()> {
    if alias == "integer" {
        return Err(Failure::failed_to_parse("$jsonSchema type 'integer' is not currently supported."));
    }
    let own = match name {
        "type" => JSON_TYPES.iter().find(|known| known.0 == alias).map(|known| known.1),
        _ => Some(alias),
    };
    let own = own.ok_or_else(|| Failure::bad_value(format!("Unknown type name alias: {alias}")))?;
    if types.insert(ValueRef::String(own))? {
        return Ok(());
    }
    let message = format!("$jsonSchema keyword '{name}' has duplicate value: {alias}");
    Err(Failure::failed_to_parse(message))
}

impl Rule for OneOf {
    fn holds(&self, value: ValueRef<'_>, _: &mut Evaluation<'_>) -> bool {
        self.types.contains(value.kind())
    }

    fn details(&self, value: ValueRef<'_>, _: &mut Evaluation<'_>) -> DocumentBuf {
        failed(self.name, &self.specified, "type did not match", value).with("consideredType", value.kind().alias())
    }
}
