//! What an index says of paths: as what a field is there, and how its texts are cut.

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

/// As what an index has a field.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Types<'s> {
    /// As its mapping says.
    Mapped(&'s [FieldType]),
    /// By the types of its values.
    Dynamic,
    /// Not at all.
    None,
}

impl<'s> Types<'s> {
    /// How strings of the field are cut, where they are.
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

    /// What becomes of whole strings, where they are kept.
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

    /// Whether values of a kind that is mapped by `of` are there; dynamic mappings have all such.
    pub fn has(self, of: fn(&FieldType) -> bool) -> bool {
        matches!(self, Self::Dynamic) || self.mapped().iter().any(of)
    }
}

impl Schema {
    /// Reads what the definition says of analyzers.
    /// # Errors
    /// `BadValue` for one that is malformed or missing; `CommandNotSupported` for one that is not built.
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

    /// Refuses analyzers that do not exist.
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

    /// How documents' strings of a field are cut.
    pub(crate) fn of_documents(&self, field: &StringField) -> Result<Arc<Analyzer>> {
        self.analyzers.get(field.analyzer.as_deref().unwrap_or(&self.definition.analyzer))
    }

    /// How what is searched for in a field is cut.
    pub(crate) fn of_searches(&self, field: &StringField) -> Result<Arc<Analyzer>> {
        let own = field.search_analyzer.as_ref().or(field.analyzer.as_ref());
        let usual = self.definition.search_analyzer.as_ref().unwrap_or(&self.definition.analyzer);
        self.analyzers.get(own.unwrap_or(usual))
    }

    /// As what the index has a path.
    pub(crate) fn types(&self, path: &str) -> Types<'_> {
        types_in(&self.definition.mapping, path)
    }

    /// The mapping of the documents at a path, where they are embedded ones.
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
