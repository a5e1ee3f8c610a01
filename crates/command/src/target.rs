//! The kinds of targets that a name may have. A command looks its target up once, before it does anything, so that all
//! commands agree; pipelines use `resolve` of `bunko_pipelines`, which also follows views down to the source below them
//! (`Below`). `find` looks for a stored collection by itself first, because a lookup by `_id` must stay short.

use bunko_catalog::{Catalog, Collection, Namespace};
use bunko_errors::Result;
use bunko_operation::OperationSource;
use bunko_pipelines::unstored::Unstored;
use bunko_series::Series;
use std::sync::Arc;

/// The target of a name, before views are followed; `Resolved` has the source below them.
pub(crate) enum Target {
    Collection(Arc<Collection>),
    /// A view that is not a time series.
    View,
    TimeSeries(Series),
    /// Documents that are generated while they are read.
    Unstored(Unstored),
    Absent,
}

impl Target {
    /// Looks up a name for an operation, whose transaction may have created a collection.
    /// # Errors
    /// `InvalidViewDefinition` if a view definition cannot be read.
    pub(crate) fn of(catalog: &Catalog, operation: &dyn OperationSource, namespace: &Namespace) -> Result<Self> {
        Self::beside(catalog, namespace, catalog.collection_for(namespace, operation))
    }

    /// As [`Self::of`], for a caller that has looked for a stored collection already.
    /// # Errors
    /// As [`Self::of`].
    pub(crate) fn beside(catalog: &Catalog, namespace: &Namespace, stored: Option<Arc<Collection>>) -> Result<Self> {
        if let Some(unstored) = Unstored::at(catalog, namespace) {
            return Ok(Self::Unstored(unstored));
        }
        if let Some(collection) = stored {
            return Ok(Self::Collection(collection));
        }
        if let Some(series) = bunko_series::find(catalog, namespace)? {
            return Ok(Self::TimeSeries(series));
        }
        Ok(if catalog.view(namespace)?.is_some() { Self::View } else { Self::Absent })
    }

    /// The stored collection; `None` for another kind of target.
    pub(crate) fn collection(&self) -> Option<&Arc<Collection>> {
        match self {
            Self::Collection(collection) => Some(collection),
            _ => None,
        }
    }

    /// The stored collection, or that of the buckets of a time series; `None` if there is neither.
    /// # Errors
    /// `CommandNotSupportedOnView` for a view that is not a time series.
    pub(crate) fn into_stored(self, catalog: &Catalog, namespace: &Namespace) -> Result<Option<Arc<Collection>>> {
        match self {
            Self::Collection(collection) => Ok(Some(collection)),
            Self::TimeSeries(series) => Ok(Some(series.buckets)),
            Self::View => catalog.refuse_view(namespace).map(|()| None),
            Self::Unstored(_) | Self::Absent => Ok(None),
        }
    }

    /// The time series; `None` for another kind of target.
    pub(crate) fn series(&self) -> Option<&Series> {
        match self {
            Self::TimeSeries(series) => Some(series),
            _ => None,
        }
    }

    /// Whether it is a view or a time series.
    pub(crate) fn is_view(&self) -> bool {
        matches!(self, Self::View | Self::TimeSeries(_))
    }

    /// Whether it is read by a pipeline over the source below it.
    pub(crate) fn is_read_by_pipeline(&self) -> bool {
        matches!(self, Self::View | Self::TimeSeries(_) | Self::Unstored(_))
    }
}

/// The target of a write, whose name is not an unstored collection.
pub(crate) enum WriteTarget {
    /// A stored collection, or a missing one that the write may create.
    Collection,
    /// A view that is not a time series. No write may change it.
    View,
    TimeSeries(Series),
}

impl WriteTarget {
    /// Looks up a name for an operation. A server without views looks up nothing.
    /// # Errors
    /// `InvalidViewDefinition` if a view definition cannot be read.
    pub(crate) fn of(catalog: &Catalog, operation: &dyn OperationSource, namespace: &Namespace) -> Result<Self> {
        if !catalog.may_have_views() || catalog.collection_for(namespace, operation).is_some() {
            return Ok(Self::Collection);
        }
        if let Some(series) = bunko_series::find(catalog, namespace)? {
            return Ok(Self::TimeSeries(series));
        }
        Ok(if catalog.view(namespace)?.is_some() { Self::View } else { Self::Collection })
    }
}
