//! `find`, `count` and `distinct` on a view, or on a source generated while it is read. Each runs as a pipeline after
//! the view's own.

use crate::hint_option::HintOption;
use crate::scope_options::ScopeOptions;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef, number};
use bunko_catalog::{Catalog, Namespace};
use bunko_errors::Result;
use bunko_pipelines::{Aggregation, PipelineContext};
use bunko_query::{DistinctValues, Hint, QueryScope};
use bunko_session::cursors::CursorSource;
use std::sync::Arc;

/// A `find`, `count` or `distinct` as a pipeline.
pub(crate) struct ReadByPipeline<'a> {
    /// The stages that are equivalent to the command.
    pub stages: ArrayBuf,
    pub scope: ScopeOptions<'a>,
    hint: HintOption<'a>,
    sort: Option<DocumentRef<'a>>,
}

impl<'a> ReadByPipeline<'a> {
    /// A read of all documents that match.
    pub(crate) fn of(filter: DocumentRef<'_>, scope: ScopeOptions<'a>, hint: HintOption<'a>) -> Self {
        let mut stages = ArrayBuf::new();
        if !filter.is_empty() {
            stages.push(&DocumentBuf::new().with("$match", filter));
        }
        Self { stages, scope, hint, sort: None }
    }

    pub(crate) fn sorted(mut self, sort: Option<DocumentRef<'a>>) -> Self {
        // The direction for reading the collection below is in the hint.
        if let Some(sort) = sort.filter(|sort| sort.get("$natural").is_none()) {
            self.push("$sort", sort);
        }
        Self { sort, ..self }
    }

    pub(crate) fn within(mut self, skip: u64, limit: Option<u64>) -> Self {
        if skip > 0 {
            self.push("$skip", skip as i64);
        }
        if let Some(limit) = limit {
            self.push("$limit", limit as i64);
        }
        self
    }

    pub(crate) fn push<'v>(&mut self, stage: &str, specification: impl Into<ValueRef<'v>>) {
        self.stages.push(&DocumentBuf::new().with(stage, specification));
    }

    /// The hint for the collection below the view.
    /// # Errors
    /// As [`Hint::parse`].
    pub(crate) fn hint(&self, catalog: &Catalog, namespace: &Namespace) -> Result<Option<Hint>> {
        self.hint.read_with_sort(self.sort, catalog, namespace)
    }

    /// Opens the read on a view. `scope` is that of its options. The flag says whether it may take long.
    /// # Errors
    /// Errors of the stages.
    pub(crate) fn open(
        &self,
        context: &dyn PipelineContext,
        namespace: &Namespace,
        scope: Arc<QueryScope>,
    ) -> Result<(Box<dyn CursorSource>, bool)> {
        let scope = self.scope.variables.define_in(scope)?;
        let mut aggregation = Aggregation::prepare(context, Some(namespace), self.stages.as_ref(), scope)?;
        aggregation.set_hint(self.hint(&context.surroundings().catalog, namespace)?)?;
        aggregation.open(context)
    }

    /// The number of documents that a `count` on a view finds.
    /// # Errors
    /// Errors of the stages.
    pub(crate) fn count(
        &self,
        context: &dyn PipelineContext,
        namespace: &Namespace,
        scope: Arc<QueryScope>,
    ) -> Result<u64> {
        let (mut source, _) = self.open(context, namespace, scope)?;
        let counted = source.next()?.and_then(|document| number::as_i64_exact(document.get("count")?));
        Ok(counted.map_or(0, i64::unsigned_abs))
    }

    /// The values at `key` that a `distinct` on a view finds.
    /// # Errors
    /// Errors of the stages; 17217.
    pub(crate) fn distinct(
        &self,
        context: &dyn PipelineContext,
        namespace: &Namespace,
        scope: Arc<QueryScope>,
        key: &str,
    ) -> Result<ArrayBuf> {
        let operation = Arc::clone(&scope.operation);
        let (mut source, _) = self.open(context, namespace, scope)?;
        let strings = context.surroundings().catalog.default_strings(namespace)?;
        let mut values = DistinctValues::new(operation, strings);
        while let Some(document) = source.next()? {
            values.add(document, key)?;
        }
        Ok(values.into_found())
    }
}
