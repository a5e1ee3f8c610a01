//! `hasAncestor` and `hasRoot`: conditions on the documents around an embedded document.

use super::{Clause, Operator};
use crate::Reader;
use crate::evaluation::Evaluation;
use crate::schema::Schema;
use crate::unit::Unit;
use crate::{FieldType, Refusal};
use bunko_errors::{Failure, Result};

/// Either operator. If the index has the embedded documents that the operator needs, it is refused as not supported.
#[derive(Debug)]
struct Hierarchy {
    name: &'static str,
    /// The path of the ancestor; `None` for the root.
    path: Option<String>,
}

pub(super) fn parse_ancestor(reader: &Reader<'_>) -> Result<Box<dyn Operator>> {
    let path = reader.required(reader.word("ancestorPath")?, "ancestorPath")?.to_owned();
    Clause::parse_alone(&reader.required(reader.inner("operator")?, "operator")?)?;
    Ok(Box::new(Hierarchy { name: "hasAncestor", path: Some(path) }))
}

pub(super) fn parse_root(reader: &Reader<'_>) -> Result<Box<dyn Operator>> {
    Clause::parse_alone(&reader.required(reader.inner("operator")?, "operator")?)?;
    Ok(Box::new(Hierarchy { name: "hasRoot", path: None }))
}

impl Operator for Hierarchy {
    fn check(&self, schema: &Schema) -> Result<()> {
        let is_embedded = match &self.path {
            Some(path) => schema.embedded(path).is_some(),
            None => {
                let fields = schema.definition.mapping.fields.values().flatten();
                fields.into_iter().any(|kind| matches!(kind, FieldType::EmbeddedDocuments { .. }))
            }
        };
        if is_embedded {
            return Err(Failure::not_supported_yet(self.name));
        }
        let message = format!("{} must be used with documents indexed as embeddedDocuments", self.name);
        Err(Refusal::Query.failure(message))
    }

    fn score(&self, _: &Unit<'_>, _: &Evaluation) -> Result<Option<f32>> {
        Ok(None)
    }
}
