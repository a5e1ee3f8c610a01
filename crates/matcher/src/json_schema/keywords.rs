//! The keywords of one schema, read once. `KNOWN` lists the supported ones.

use super::Schema;
use crate::parser::Parser;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::{Failure, Result};

/// Supported keywords, sorted.
const KNOWN: &[&str] = &[
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "bsonType",
    "dependencies",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "properties",
    "required",
    "title",
    "type",
    "uniqueItems",
];

/// Keywords of JSON Schema that MongoDB does not accept.
const NOT_TAKEN: &[&str] = &["$ref", "$schema", "default", "definitions", "format", "id"];

/// Keywords for encrypted fields, which are not supported yet.
const NOT_YET: &[&str] = &["encrypt", "encryptMetadata"];

/// The operands of a schema's keywords, at their positions in [`KNOWN`].
pub(super) struct Keywords<'a> {
    operands: [Option<ValueRef<'a>>; KNOWN.len()],
    parser: &'a Parser<'a>,
}

impl<'a> Keywords<'a> {
    /// Reads the fields of a schema.
    /// # Errors
    /// `FailedToParse` for a keyword that is unknown, not supported or given twice.
    pub fn read(schema: DocumentRef<'a>, parser: &'a Parser<'a>) -> Result<Self> {
        let mut keywords = Self { operands: [None; KNOWN.len()], parser };
        for element in schema {
            let name = element.name;
            let Ok(place) = KNOWN.binary_search(&name) else { return Err(refusal(name)) };
            if keywords.operands[place].replace(element.value).is_some() {
                return Err(Failure::failed_to_parse(format!("Duplicate $jsonSchema keyword: {name}")));
            }
        }
        Ok(keywords)
    }

    /// Parses a nested schema.
    /// # Errors
    /// As parsing that schema alone.
    pub fn schema(&self, schema: DocumentRef<'_>) -> Result<Schema> {
        Schema::of(schema, self.parser)
    }

    /// The operand of a keyword in the table.
    pub fn get(&self, name: &str) -> Option<ValueRef<'a>> {
        KNOWN.binary_search(&name).ok().and_then(|place| self.operands[place])
    }

    /// `title` and `description`.
    /// # Errors
    /// `TypeMismatch` if one is not a string.
    pub fn annotations(&self) -> Result<DocumentBuf> {
        let mut annotations = DocumentBuf::new();
        for name in ["title", "description"] {
            match self.get(name) {
                None => {}
                Some(ValueRef::String(text)) => {
                    annotations.append(name, text);
                }
                Some(_) => {
                    let message = format!("$jsonSchema keyword '{name}' must be of type string");
                    return Err(Failure::type_mismatch(message));
                }
            }
        }
        Ok(annotations)
    }
}

fn refusal(name: &str) -> Failure {
    Failure::failed_to_parse(if NOT_TAKEN.contains(&name) {
        format!("$jsonSchema keyword '{name}' is not currently supported")
    } else if NOT_YET.contains(&name) {
        format!("$jsonSchema keyword '{name}' is not supported yet")
    } else {
        format!("Unknown $jsonSchema keyword: {name}")
    })
}

#[cfg(test)]
mod tests {
    use super::KNOWN;

    #[test]
    fn the_table_is_sorted() {
        assert!(KNOWN.is_sorted());
    }
}
