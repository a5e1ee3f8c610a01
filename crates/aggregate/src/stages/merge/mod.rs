//! `$merge`: merges documents into another collection, each with the document that it matches.

mod parse;

use super::{Definition, Reads, Stage};
use crate::{DocumentStream, Environment, WriteStage};
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, StringUse, ValueRef};
use bunko_errors::Result;
use bunko_expression::{Dependencies, Expression, FieldPath};
use std::sync::Arc;

pub(super) const DEFINITION: Definition =
    Definition { facts: &bunko_stages::MERGE, strings: StringUse::AsBytes, parse: parse::parse };

/// The parameters of `$merge`. The pipeline's caller writes; the stage only passes its input on.
pub struct Merge {
    /// The database, if the stage names it.
    pub database: Option<String>,
    /// The collection.
    pub collection: String,
    /// The fields that documents are matched by; `_id` by default.
    pub on: Vec<FieldPath>,
    /// The action for a document with a match.
    pub when_matched: WhenMatched,
    /// The action for a document without a match.
    pub when_not_matched: WhenNotMatched,
    /// Variables of the pipeline, evaluated on the new document.
    variables: Vec<(String, Expression)>,
}

/// The action on a matching document.
pub enum WhenMatched {
    /// Replaced by the new document.
    Replace,
    /// Left unchanged.
    KeepExisting,
    /// Gets the fields of the new document.
    Merge,
    /// Fails.
    Fail,
    /// Changed by these stages of an update.
    Pipeline(ArrayBuf),
}

/// The action for a document without a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenNotMatched {
    /// Inserted.
    Insert,
    /// Dropped.
    Discard,
    /// Fails.
    Fail,
}

impl Merge {
    /// Variables of [`WhenMatched::Pipeline`]: the new document and the variables of `let`.
    /// # Errors
    /// Errors of the expressions.
    pub fn constants(&self, new: DocumentRef<'_>, environment: &Environment) -> Result<DocumentBuf> {
        let mut constants = DocumentBuf::new().with("new", new);
        let context = environment.context(new);
        for (name, expression) in &self.variables {
            if let Some(value) = expression.evaluate(&context)?.get() {
                constants.append(name, value);
            }
        }
        Ok(constants)
    }
}

/// The stage in its pipeline.
struct Merging(Arc<Merge>);

impl Stage for Merging {
    fn name(&self) -> &'static str {
        DEFINITION.facts.name
    }

    fn open(self: Arc<Self>, input: Box<dyn DocumentStream>, _: &Arc<Environment>) -> Box<dyn DocumentStream> {
        input
    }

    fn add_dependencies(&self, dependencies: &mut Dependencies) -> Reads {
        dependencies.add_all();
        Reads::OthersToo
    }

    fn write(&self) -> Option<WriteStage> {
        Some(WriteStage::Merge(Arc::clone(&self.0)))
    }
}

/// Whether a value is exactly `$$ROOT`, the new document.
fn is_root(value: ValueRef<'_>) -> bool {
    value.as_str() == Some("$$ROOT")
}
