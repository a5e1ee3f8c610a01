//! `$merge`: puts the documents into another collection, each upon the one that it belongs to.

mod parse;

use super::{Definition, Reads, Stage};
use crate::{DocumentStream, Documents, Environment, Pipeline, WriteStage};
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{Dependencies, Expression, FieldPath, Variables};
use std::sync::Arc;

pub(super) const DEFINITION: Definition = Definition { name: "$merge", parse: parse::parse };

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
    /// It goes through these stages.
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
    /// What the pipeline of [`WhenMatched::Pipeline`] makes of the document that is there.
    /// # Errors
    /// Those of the stages and variables; 17276 where the pipeline reads a variable that has no value.
    pub fn updated(
        &self,
        stages: &ArrayBuf,
        existing: DocumentRef<'_>,
        new: DocumentRef<'_>,
        environment: &Environment,
    ) -> Result<DocumentBuf> {
        let mut variables: Variables = environment.scope.variables.clone();
        let context = environment.context(new);
        variables.define("new", Some(Value::Document(new.to_owned())))?;
        for (name, expression) in &self.variables {
            if let Some(value) = expression.evaluate(&context)?.into_value() {
                variables.define(name, Some(value))?;
            }
        }
        let pipeline = Pipeline::parse(stages.as_ref(), environment.with_variables(variables))?;
        let updated = pipeline.open(Box::new(Documents::new(vec![existing.to_owned()]))).next()?;
        updated.ok_or_else(|| Failure::new(ErrorCode::INTERNAL_ERROR, "$merge's pipeline yields no document"))
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
