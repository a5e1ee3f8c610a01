//! Names, followed through views to the source below them.

use crate::unstored::Unstored;
use bunko_bson::{ArrayBuf, ArrayRef, Element, StringOrder};
use bunko_catalog::{Catalog, Collection, Index, Namespace, Transaction};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;
use bunko_session::transactions::check_read;
use bunko_stages::Source;
use std::sync::Arc;

/// Maximum number of views that may stand on each other; a chain of this depth can be defined but not read.
/// Source: MongoDB 8.2, "View depth too deep or view cycle detected".
pub(crate) const VIEW_DEPTH_MAX: usize = 20;

/// The source that a name resolves to.
#[derive(Clone)]
pub struct Resolved {
    /// The pipelines of the views on the way, the lowest view's first.
    pub views: ArrayBuf,
    /// Number of views on the way.
    pub views_count: usize,
    /// The string order of the topmost view; by bytes if there is no view.
    pub strings: StringOrder,
    /// Name of the source below the views.
    pub namespace: Namespace,
    /// The source itself.
    pub below: Below,
}

/// The source below all views.
#[derive(Clone)]
pub enum Below {
    /// A stored collection.
    Collection(Noted),
    /// Documents that are generated while they are read, without a planner.
    Unstored(Unstored),
    /// No collection or view has the name.
    Absent,
}

impl Below {
    /// The stored collection, if it is one.
    pub fn collection(&self) -> Option<&Noted> {
        match self {
            Self::Collection(noted) => Some(noted),
            Self::Unstored(_) | Self::Absent => None,
        }
    }

    /// The collection that is not stored, if it is one.
    pub fn unstored(&self) -> Option<Unstored> {
        match self {
            Self::Unstored(unstored) => Some(*unstored),
            Self::Collection(_) | Self::Absent => None,
        }
    }
}

/// A collection, and its indexes that were ready when it was noted.
#[derive(Clone)]
pub struct Noted {
    /// The collection.
    pub collection: Arc<Collection>,
    /// The collection's ready indexes.
    pub indexes: Arc<[Arc<Index>]>,
}

/// Resolves a name through views to the source below them.
/// # Errors
/// `ViewDepthLimitExceeded`.
pub(crate) fn resolve(catalog: &Catalog, namespace: &Namespace) -> Result<Resolved> {
    resolve_by(catalog, namespace, &|namespace| catalog.collection(namespace))
}

/// As [`resolve`], for an operation. Its transaction may have created collections, and may not read every collection.
/// # Errors
/// As [`resolve`] and [`check_read`].
pub(crate) fn resolve_for(catalog: &Catalog, namespace: &Namespace, operation: &OperationContext) -> Result<Resolved> {
    let resolved = resolve_by(catalog, namespace, &|namespace| catalog.collection_for(namespace, operation))?;
    if Transaction::of(operation).is_some() {
        check_read(resolved.namespace.database(), resolved.namespace.collection())?;
    }
    if resolved.below.collection().is_none() {
        catalog.check_never_removed(namespace, operation)?;
    }
    Ok(resolved)
}

fn resolve_by(
    catalog: &Catalog,
    namespace: &Namespace,
    find: &dyn Fn(&Namespace) -> Option<Arc<Collection>>,
) -> Result<Resolved> {
    let mut pipelines = Vec::new();
    let mut strings = StringOrder::default();
    let mut below = namespace.clone();
    loop {
        if let Some(unstored) = Unstored::at(catalog, &below) {
            return Ok(resolved(&pipelines, strings, below, Below::Unstored(unstored)));
        }
        if let Some(collection) = find(&below) {
            let indexes = collection.ready_indexes().into();
            return Ok(resolved(&pipelines, strings, below, Below::Collection(Noted { collection, indexes })));
        }
        let Some(view) = catalog.view(&below)? else { return Ok(resolved(&pipelines, strings, below, Below::Absent)) };
        if pipelines.is_empty() {
            strings = view.strings()?;
        }
        pipelines.push(view.pipeline);
        let Ok(next) = Namespace::new(namespace.database(), &view.view_on) else {
            return Ok(resolved(&pipelines, strings, below, Below::Absent));
        };
        below = next;
        // A view at the maximum depth can be defined, but not read.
        if pipelines.len() >= VIEW_DEPTH_MAX {
            let message = format!("View depth too deep or view cycle detected; maximum depth is {VIEW_DEPTH_MAX}");
            return Err(Failure::new(ErrorCode::VIEW_DEPTH_LIMIT_EXCEEDED, message));
        }
    }
}

/// A pipeline after those of the views that it reads. A pipeline that begins with a fusion or a vector search applies
/// the views itself.
pub fn behind_views(resolved: &Resolved, pipeline: ArrayRef<'_>) -> ArrayBuf {
    if reads_by_itself(pipeline) {
        return pipeline.iter().collect();
    }
    if searches(pipeline) {
        // A search runs on the collection below, and its results go through the view.
        return pipeline.iter().take(1).chain(resolved.views.as_ref().iter()).chain(pipeline.iter().skip(1)).collect();
    }
    resolved.views.as_ref().iter().chain(pipeline.iter()).collect()
}

/// Where the input of a pipeline with this first stage comes from.
fn source_of(first: Option<Element<'_>>) -> Source {
    first.and_then(|first| bunko_stages::find(first.name)).map_or(Source::Input, |stage| stage.source)
}

/// Whether a pipeline begins with a search for documents or for their metadata.
fn searches(pipeline: ArrayRef<'_>) -> bool {
    let first = pipeline.iter().next().and_then(|stage| stage.as_document()?.first());
    source_of(first) == Source::Search
}

/// Whether the first stage of a pipeline, or a pipeline inside it, reads the collection itself.
pub(crate) fn reads_by_itself(pipeline: ArrayRef<'_>) -> bool {
    let first = pipeline.iter().next().and_then(|stage| stage.as_document()?.first());
    source_of(first).resolves_collection()
}

fn resolved(pipelines: &[ArrayBuf], strings: StringOrder, namespace: Namespace, below: Below) -> Resolved {
    let views = pipelines.iter().rev().flat_map(|pipeline| pipeline.as_ref().iter()).collect();
    Resolved { views, views_count: pipelines.len(), strings, namespace, below }
}

/// The error for a collation other than the view's.
pub fn overrides_view(view: &Namespace) -> Failure {
    let message = format!("Cannot override a view's default collation: {view}");
    Failure::new(ErrorCode::OPTION_NOT_SUPPORTED_ON_VIEW, message)
}
