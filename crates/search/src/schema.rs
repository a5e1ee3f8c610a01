//! A definition applied to paths: the types of fields, and their analyzers.

use crate::analysis::{Analyzer, Analyzers};
use crate::{Definition, FieldType, Mapping, NormalizerName, StringField};
use bunko_errors::Result;
use std::sync::{Arc, LazyLock};

static STRING_USUAL: LazyLock<StringField> = LazyLock::new(StringField::usual);

/// A definition with its analyzers.
#[derive(Clone, Debug)]
pub struct Schema {
    pub(crate) definition: Arc<Definition>,
    analyzers: Analyzers,
}

/// The types of a field in an index.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Types<'s> {
    /// From its mapping.
    Mapped(&'s [FieldType]),
    /// From the types of its values.
    Dynamic,
    /// Not indexed.
    None,
}

impl<'s> Types<'s> {
    /// The analysis of the field's strings, if they are indexed.
    pub fn string(self) -> Option<&'s StringField> {
        match self {
            Self::Mapped(types) => types.iter().find_map(|kind| match kind {
                FieldType::String(field) => Some(field),
                _ => None,
            }),
            Self::Dynamic => Some(&STRING_USUAL),
            Self::None => None,
        }
    }

    /// The normalization of whole strings, if they are indexed.
    pub fn token(self) -> Option<NormalizerName> {
        self.mapped().iter().find_map(|kind| match kind {
            FieldType::Token(normalizer) => Some(*normalizer),
            _ => None,
        })
    }

    pub fn mapped(self) -> &'s [FieldType] {
        match self {
            Self::Mapped(types) => types,
            Self::Dynamic | Self::None => &[],
        }
    }

    /// Whether values of a kind that `of` selects are indexed. A dynamic mapping indexes all kinds.
    pub fn has(self, of: fn(&FieldType) -> bool) -> bool {
        matches!(self, Self::Dynamic) || self.mapped().iter().any(of)
    }
}

impl Schema {
    /// Parses the analyzers of the definition.
    /// # Errors
    /// `BadValue` for a malformed or unknown analyzer; `CommandNotSupported` for an unsupported one.
    pub fn new(definition: &Arc<Definition>, path: &str) -> Result<Self> {
        let analyzers = Analyzers::parse(&definition.analyzers, path)?;
        let schema = Self { definition: Arc::clone(definition), analyzers };
        schema.analyzers.get(&definition.analyzer)?;
        if let Some(name) = &definition.search_analyzer {
            schema.analyzers.get(name)?;
        }
        schema.check(&definition.mapping)?;
        Ok(schema)
    }

    /// Refuses unknown analyzers.
    fn check(&self, mapping: &Mapping) -> Result<()> {
        for kind in mapping.fields.values().flatten() {
            match kind {
                FieldType::String(field) => {
                    for field in std::iter::once(field).chain(field.multi.values()) {
                        for name in field.analyzer.iter().chain(&field.search_analyzer) {
                            self.analyzers.get(name)?;
                        }
                    }
                }
                FieldType::Autocomplete(field) => {
                    field.analyzer.iter().try_for_each(|name| self.analyzers.get(name).map(drop))?;
                }
                FieldType::Document(mapping) | FieldType::EmbeddedDocuments { mapping, .. } => self.check(mapping)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// The analyzer of documents' strings in a field.
    pub(crate) fn of_documents(&self, field: &StringField) -> Result<Arc<Analyzer>> {
        self.analyzers.get(field.analyzer.as_deref().unwrap_or(&self.definition.analyzer))
    }

    /// The analyzer of searched texts in a field.
    pub(crate) fn of_searches(&self, field: &StringField) -> Result<Arc<Analyzer>> {
        let own = field.search_analyzer.as_ref().or(field.analyzer.as_ref());
        let usual = self.definition.search_analyzer.as_ref().unwrap_or(&self.definition.analyzer);
        self.analyzers.get(own.unwrap_or(usual))
    }

    /// Finds the types of the field at a path.
    pub(crate) fn types(&self, path: &str) -> Types<'_> {
        types_in(&self.definition.mapping, path)
    }

    /// The mapping of the embedded documents at a path, if the path holds embedded documents.
    pub(crate) fn embedded(&self, path: &str) -> Option<(&Mapping, &crate::StoredSource)> {
        self.types(path).mapped().iter().find_map(|kind| match kind {
            FieldType::EmbeddedDocuments { mapping, stored_source } => Some((mapping, stored_source)),
            _ => None,
        })
    }
}

fn types_in<'s>(mapping: &'s Mapping, path: &str) -> Types<'s> {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    let Some(types) = mapping.types(name) else {
        return if mapping.is_dynamic { Types::Dynamic } else { Types::None };
    };
    let Some(rest) = rest else { return Types::Mapped(types) };
    for kind in types {
        if let FieldType::Document(inner) | FieldType::EmbeddedDocuments { mapping: inner, .. } = kind {
            return types_in(inner, rest);
        }
    }
    Types::None
}
