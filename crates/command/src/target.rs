//! The kinds of things that a name leads to. Each command that reads asks here, so that all of them find the same.

use crate::invocation::Invocation;
use crate::time_series::{self, Series};
use crate::unstored::Unstored;
use bunko_catalog::{Collection, Namespace};
use bunko_errors::Result;
use std::sync::Arc;

/// The thing that a name leads to, before views are followed; `Resolved` has the thing below them.
pub(crate) enum Target {
    Collection(Arc<Collection>),
    /// A view that is no time series.
    View,
    TimeSeries(Series),
    /// Documents that are made while they are read.
    Unstored(Unstored),
    Absent,
}

impl Target {
    /// Looks a name up for the command's operation, whose transaction may have made a collection.
    /// # Errors
    /// `InvalidViewDefinition` where a definition of a view cannot be read.
    pub(crate) fn of(invocation: &Invocation<'_>, namespace: &Namespace) -> Result<Self> {
        let catalog = &invocation.service.catalog;
        if let Some(unstored) = Unstored::at(catalog, namespace) {
            return Ok(Self::Unstored(unstored));
        }
        if let Some(collection) = invocation.collection(namespace) {
            return Ok(Self::Collection(collection));
        }
        if let Some(series) = time_series::find(catalog, namespace)? {
            return Ok(Self::TimeSeries(series));
        }
        Ok(if catalog.view(namespace)?.is_some() { Self::View } else { Self::Absent })
    }

    /// Whether it is a view of a kind.
    pub(crate) fn is_view(&self) -> bool {
        matches!(self, Self::View | Self::TimeSeries(_))
    }

    /// Whether a read of it is a pipeline over what is below it.
    pub(crate) fn is_read_by_pipeline(&self) -> bool {
        matches!(self, Self::View | Self::TimeSeries(_) | Self::Unstored(_))
    }
}
