//! The fields of documents that an index contains.

use super::{FieldType, check_depth, is_true};
use crate::Reader;
use bunko_bson::ValueRef;
use bunko_errors::{Failure, Result};
use std::collections::BTreeMap;

/// The fields of a document that an index contains.
#[derive(Clone, Debug, Default)]
pub struct Mapping {
    /// Whether other fields are indexed too, by the types of their values.
    pub is_dynamic: bool,
    /// The types of each named field; empty for a field that is left out.
    pub fields: BTreeMap<String, Vec<FieldType>>,
}

impl Mapping {
    /// A mapping of all fields, by the types of their values.
    pub fn dynamic() -> Self {
        Self { is_dynamic: true, fields: BTreeMap::new() }
    }

    /// Parses all of `mappings`.
    pub(super) fn parse(reader: &Reader<'_>, depth: usize) -> Result<Self> {
        let mapping = Self::parse_part(reader, depth)?;
        reader.done()?;
        Ok(mapping)
    }

    /// Reads `dynamic` and `fields`.
    pub(super) fn parse_part(reader: &Reader<'_>, depth: usize) -> Result<Self> {
        check_depth(depth)?;
        let is_dynamic = match (is_true(reader.value("dynamic")), reader.value("dynamic")) {
            (Some(is_dynamic), _) => is_dynamic,
            (None, Some(ValueRef::Document(_))) => {
                return Err(Failure::not_supported_yet(&reader.at("dynamic.typeSet")));
            }
            (None, _) => return Err(reader.wrong("dynamic", "must be a boolean")),
        };
        let mut fields = BTreeMap::new();
        if let Some(named) = reader.inner("fields")? {
            for field in named.document() {
                if field.name.is_empty() {
                    return Err(named.failure("cannot have an empty field name"));
                }
                let types = named.one_or_several(field.name)?;
                let types = named.required(types, field.name)?;
                let types = types.iter().map(|reader| FieldType::parse(reader, depth + 1));
                fields.insert(field.name.to_owned(), types.collect::<Result<_>>()?);
            }
        }
        Ok(Self { is_dynamic, fields })
    }

    /// The types of a named field.
    pub fn types(&self, field: &str) -> Option<&[FieldType]> {
        self.fields.get(field).map(Vec::as_slice)
    }
}
