//! `find`, `count` and `distinct` on a view, or on a source generated while it is read. Each runs as a pipeline behind
//! the view's own.

use crate::commands::aggregate::{open, prepare};
use crate::hint_option::HintOption;
use crate::invocation::Invocation;
use crate::scope_options::ScopeOptions;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef, number};
use bunko_catalog::Namespace;
use bunko_errors::Result;
use bunko_query::{DistinctValues, Hint};
use bunko_session::Halt;
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
    pub(crate) fn hint(&self, invocation: &Invocation<'_>, namespace: &Namespace) -> Result<Option<Hint>> {
        self.hint.read_with_sort(self.sort, &invocation.service.catalog, namespace)
    }

    /// Opens the read on a view. The flag says whether it may take long.
    /// # Errors
    /// Errors of the stages.
    pub(crate) fn open(
        &self,
        invocation: &Invocation<'_>,
        namespace: &Namespace,
    ) -> Result<(Box<dyn CursorSource>, bool), Halt> {
        let scope = self.scope.variables.define_in(invocation.scope_in(&self.scope, namespace)?)?;
        let mut aggregation = prepare(invocation, Some(namespace), self.stages.as_ref(), scope)?;
        aggregation.query.hint = self.hint(invocation, namespace)?;
        open(invocation, aggregation)
    }

    /// The number of documents that a `count` on a view finds.
    /// # Errors
    /// Errors of the stages.
    pub(crate) fn count(&self, invocation: &Invocation<'_>, namespace: &Namespace) -> Result<u64, Halt> {
        let (mut source, _) = self.open(invocation, namespace)?;
        let counted = source.next()?.and_then(|document| number::as_i64_exact(document.get("count")?));
        Ok(counted.map_or(0, i64::unsigned_abs))
    }

    /// The values at `key` that a `distinct` on a view finds.
    /// # Errors
    /// Errors of the stages; 17217.
    pub(crate) fn distinct(
        &self,
        invocation: &Invocation<'_>,
        namespace: &Namespace,
        key: &str,
    ) -> Result<ArrayBuf, Halt> {
        let (mut source, _) = self.open(invocation, namespace)?;
        let strings = invocation.service.catalog.default_strings(namespace)?;
        let mut values = DistinctValues::new(Arc::clone(invocation.operation()), strings);
        while let Some(document) = source.next()? {
            values.add(document, key)?;
        }
        Ok(values.into_found())
    }
}

/// An entry in the list of collections: for a view, a time series (a view that can be written to), or a collection of
/// sessions (listed as read-only).
pub(crate) fn describe(namespace: &Namespace, kind: &str, options: &DocumentBuf) -> DocumentBuf {
    let info = DocumentBuf::new().with("readOnly", ValueRef::Boolean(kind != "timeseries"));
    DocumentBuf::new()
        .with("name", namespace.collection())
        .with("type", kind)
        .with("options", options)
        .with("info", &info)
}
