//! Pipelines inside stages.

use crate::{DocumentStream, Documents, Environment, Pipeline, SourceName};
use bunko_bson::{ArrayBuf, ArrayRef, ValueRef};
use bunko_errors::Result;

/// Stages before which nothing may stand: they find their documents by themselves.
const FINDING: [&str; 10] = [
    "$collStats",
    "$documents",
    "$geoNear",
    "$indexStats",
    "$listSearchIndexes",
    "$listSessions",
    "$planCacheStats",
    "$search",
    "$searchMeta",
    "$vectorSearch",
];

/// Whether a pipeline begins with one of them.
fn begins_by_itself(stages: ArrayRef<'_>) -> bool {
    let first = stages.iter().next().and_then(|stage| stage.as_document()?.first());
    first.is_some_and(|first| FINDING.contains(&first.name))
}

/// A pipeline behind more stages, which filter.
pub(crate) fn behind(filters: &[ValueRef<'_>], stages: ArrayRef<'_>) -> ArrayBuf {
    let before = usize::from(begins_by_itself(stages));
    stages.iter().take(before).chain(filters.iter().copied()).chain(stages.iter().skip(before)).collect()
}

/// A pipeline over another collection, or one that begins with documents of its own.
pub(crate) struct SubPipeline {
    /// What it reads; none where it begins with `$documents`.
    pub source: Option<SourceName>,
    /// As it was sent.
    pub stages: ArrayBuf,
}

impl SubPipeline {
    /// Checks a pipeline, in the world that it will run in, and notes its source. It is parsed again whenever it is
    /// opened, because its variables' values are part of the plan then.
    /// # Errors
    /// Those of the stages and of the source's name.
    pub fn parse(source: Option<SourceName>, stages: ArrayRef<'_>, environment: &Environment) -> Result<Self> {
        if let Some(source) = &source {
            environment.sources.note(source, &environment.scope.strings)?;
        }
        Pipeline::parse(stages, environment.over(source.as_ref()))?;
        Ok(Self { source, stages: stages.iter().collect() })
    }

    /// The collection, where its documents are what the pipeline begins with.
    pub fn reads_plainly(&self) -> Option<&SourceName> {
        self.source.as_ref().filter(|_| !begins_by_itself(self.stages.as_ref()))
    }

    /// Opens it behind more stages, none or few.
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
