//! `$merge`: puts the documents into another collection, each upon the one that it belongs to.

mod parse;

use super::{Definition, Reads, Stage};
use crate::{DocumentStream, Environment, WriteStage};
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, StringUse, ValueRef};
use bunko_errors::Result;
use bunko_expression::{Dependencies, Expression, FieldPath};
use std::sync::Arc;

pub(super) const DEFINITION: Definition =
    Definition { name: "$merge", strings: StringUse::AsBytes, parse: parse::parse };

/// What `$merge` asks for. Whoever runs the pipeline writes; the stage itself only hands its input on.
pub struct Merge {
    /// The database, where the stage says it.
    pub database: Option<String>,
    /// The collection.
    pub collection: String,
    /// The fields by which documents belong together; `_id` where none are said.
    pub on: Vec<FieldPath>,
    /// What becomes of the document that is there.
    pub when_matched: WhenMatched,
    /// What becomes of one that belongs to none.
    pub when_not_matched: WhenNotMatched,
    /// The variables of the pipeline, which see the new document.
    variables: Vec<(String, Expression)>,
}

/// What becomes of the document that is there.
pub enum WhenMatched {
    /// The new one takes its place.
    Replace,
    /// It is left alone.
    KeepExisting,
    /// The new one's fields are set in it.
    Merge,
    /// It is an error.
    Fail,
    /// It goes through these stages, those of an update.
    Pipeline(ArrayBuf),
}

/// What becomes of a document that belongs to none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenNotMatched {
    /// It is inserted.
    Insert,
    /// Nothing.
    Discard,
    /// It is an error.
    Fail,
}

impl Merge {
    /// What the stages of [`WhenMatched::Pipeline`] name like variables: the new document and what `let` makes of it.
    /// # Errors
    /// Those of the expressions.
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
        DEFINITION.name
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

/// Whether a value is exactly the name of the new document.
fn is_root(value: ValueRef<'_>) -> bool {
    value.as_str() == Some("$$ROOT")
}
