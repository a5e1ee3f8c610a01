//! Pipelines inside stages.

use crate::{DocumentStream, Documents, Environment, Pipeline, SourceName};
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::Result;
use bunko_stages::Stage;

/// Whether a pipeline begins with a stage that finds its documents itself.
fn begins_by_itself(stages: ArrayRef<'_>) -> bool {
    let first = stages.iter().next().and_then(|stage| stage.as_document()?.first());
    first.and_then(|first| bunko_stages::find(first.name)).is_some_and(Stage::finds_documents)
}

/// Puts filtering stages before a pipeline, but after a stage that must come first.
pub(crate) fn behind(filters: &[ValueRef<'_>], stages: ArrayRef<'_>) -> ArrayBuf {
    let before = usize::from(begins_by_itself(stages));
    stages.iter().take(before).chain(filters.iter().copied()).chain(stages.iter().skip(before)).collect()
}

/// A pipeline over another collection, or one that begins with its own documents.
pub(crate) struct SubPipeline {
    /// The source that it reads; `None` if it begins with `$documents`.
    pub source: Option<SourceName>,
    /// The stages as sent.
    pub stages: ArrayBuf,
}

impl SubPipeline {
    /// Checks a pipeline in the environment that it will run in, and announces its source. Each opening parses it
    /// again, since the values of its variables are part of the plan.
    /// # Errors
    /// Errors of the stages and of the source's name.
    pub fn parse(source: Option<SourceName>, stages: ArrayRef<'_>, environment: &Environment) -> Result<Self> {
        if let Some(source) = &source {
            environment.sources.note(source, &environment.scope.strings)?;
        }
        Pipeline::parse(stages, environment.over(source.as_ref()))?;
        Ok(Self { source, stages: stages.iter().collect() })
    }

    /// Adds a filter after the stages.
    pub fn add_filter(&mut self, filter: DocumentRef<'_>) {
        self.stages.push(&DocumentBuf::new().with(bunko_stages::MATCH.name, filter));
    }

    /// The source collection, if the pipeline begins with its documents.
    pub fn reads_plainly(&self) -> Option<&SourceName> {
        self.source.as_ref().filter(|_| !begins_by_itself(self.stages.as_ref()))
    }

    /// Opens the pipeline with a few stages before it, or none.
    /// # Errors
    /// As [`crate::Sources::open`].
    pub fn open(&self, first: &[ValueRef<'_>], environment: &Environment) -> Result<Box<dyn DocumentStream>> {
        let stages = behind(first, self.stages.as_ref());
        match &self.source {
            Some(source) => environment.sources.open(source, stages.as_ref(), environment),
            None => Ok(Pipeline::parse(stages.as_ref(), environment.over(None))?.open(Box::new(Documents::none()))),
        }
    }
}
