//! Pipelines inside stages.

use crate::added_filters::AddedFilters;
use crate::{DocumentStream, Documents, Environment, Pipeline, SourceName};
use bunko_bson::{ArrayBuf, ArrayRef, DocumentRef, ValueRef};
use bunko_errors::Result;
use bunko_stages::Stage;
use std::sync::OnceLock;

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
    sent: ArrayBuf,
    /// Filters after these stages.
    added: AddedFilters,
    /// The stages with a stage for the added filters, once they are asked for.
    whole: OnceLock<ArrayBuf>,
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
        Pipeline::check(stages, environment.over(source.as_ref()))?;
        let (added, whole) = (AddedFilters::default(), OnceLock::new());
        Ok(Self { source, sent: stages.iter().collect(), added, whole })
    }

    /// Adds a filter after the stages.
    pub fn add_filter(&mut self, filter: DocumentRef<'_>) {
        self.added.add(filter);
        self.whole = OnceLock::new();
    }

    /// The stages, with those that were added.
    pub fn stages(&self) -> ArrayRef<'_> {
        if self.added.is_empty() {
            return self.sent.as_ref();
        }
        let whole = || {
            let stage = self.added.stage();
            self.sent.as_ref().iter().chain(stage.iter().map(ValueRef::from)).collect()
        };
        self.whole.get_or_init(whole).as_ref()
    }

    /// Whether it has no stages.
    pub fn is_empty(&self) -> bool {
        self.sent.as_ref().is_empty() && self.added.is_empty()
    }

    /// The source collection, if the pipeline begins with its documents.
    pub fn reads_plainly(&self) -> Option<&SourceName> {
        self.source.as_ref().filter(|_| !begins_by_itself(self.sent.as_ref()))
    }

    /// Opens the pipeline with a few stages before it, or none.
    /// # Errors
    /// As [`crate::Sources::open`].
    pub fn open(&self, first: &[ValueRef<'_>], environment: &Environment) -> Result<Box<dyn DocumentStream>> {
        let stages = behind(first, self.stages());
        match &self.source {
            Some(source) => environment.sources.open(source, stages.as_ref(), environment),
            None => {
                let pipeline = Pipeline::parse_extended(stages.as_ref(), environment.over(None))?;
                Ok(pipeline.open(Box::new(Documents::none())))
            }
        }
    }
}
