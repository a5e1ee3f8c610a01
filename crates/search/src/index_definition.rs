//! The definition of a search index of either type.

use crate::{Definition, Schema, VectorDefinition};
use bunko_bson::DocumentRef;
use bunko_errors::{Failure, Result};
use std::sync::Arc;

/// The definition of a search index.
#[derive(Clone, Debug)]
pub enum SearchIndexDefinition {
    /// Type `search`: words and values of fields.
    Search(Arc<Definition>),
    /// Type `vectorSearch`: vectors.
    Vector(Arc<VectorDefinition>),
}

impl SearchIndexDefinition {
    /// Parses the definition of an index of type `kind`; messages call it `path`.
    /// # Errors
    /// `BadValue` for a malformed definition or another type; `CommandNotSupported` for unsupported options.
    pub fn parse(kind: &str, definition: DocumentRef<'_>, path: &str) -> Result<Self> {
        match kind {
            "search" => {
                let definition = Arc::new(Definition::parse(definition, path)?);
                Schema::new(&definition, path)?;
                Ok(Self::Search(definition))
            }
            "vectorSearch" => Ok(Self::Vector(Arc::new(VectorDefinition::parse(definition, path)?))),
            _ => Err(Failure::bad_value(format!("\"{kind}\" must be one of [search, vectorSearch]"))),
        }
    }

    /// The type's name.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Search(_) => "search",
            Self::Vector(_) => "vectorSearch",
        }
    }
}
