//! `$out`: fills a new collection beside the old one, then renames it in one step, so that a server that is killed
//! before still has the old one. For a time series, this is the collection of its buckets.

use super::{WriteContext, collection_not_view};
use bunko_aggregate::DocumentStream;
use bunko_catalog::stored_document::{self, EmptyTimestamps, Stamps};
use bunko_catalog::{Catalog, Collection, CreateOptions, IndexSpec, Namespace, Order, RenameTarget};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;
use bunko_series::Series;
use bunko_timeseries::TimeSeries;
use std::borrow::Cow;
use std::sync::Arc;

/// Maximum number of documents, and of their bytes, in one insert.
const BATCH_COUNT_MAX: usize = 1000;
const BATCH_BYTES_MAX: usize = 4 << 20;

/// The target of the output.
pub(super) enum OutputTarget {
    /// A collection, and the existing one that it replaces.
    Collection(Option<Arc<Collection>>),
    /// A time series, and the existing collection of buckets that it replaces.
    Series(TimeSeries, Option<Arc<Collection>>),
}

impl OutputTarget {
    /// The target under that name, if it may be replaced.
    /// # Errors
    /// `CommandNotSupportedOnView`; 17152 for a capped collection; 7268700 and 7406103 if the command asks for a time
    /// series and the name is not one, or is one with other options.
    pub fn of(
        catalog: &Catalog,
        operation: &OperationContext,
        name: &Namespace,
        asked: Option<&TimeSeries>,
    ) -> Result<Self> {
        let existing = bunko_series::find(catalog, name)?;
        match (existing, asked) {
            (Some(Series { options, buckets }), asked) => {
                if asked.is_some_and(|asked| *asked != options) {
                    let message = format!("$out with time series options that differ from those of {name}");
                    return Err(Failure::new(ErrorCode(7_406_103), message));
                }
                Ok(Self::Series(options, Some(buckets)))
            }
            (None, Some(asked)) => {
                if catalog.collection(name).is_some() || catalog.view(name)?.is_some() {
                    let message =
                        format!("$out with time series options into {name}, which is not a time series collection");
                    return Err(Failure::new(ErrorCode(7_268_700), message));
                }
                Ok(Self::Series(asked.clone(), None))
            }
            (None, None) => {
                let existing = collection_not_view(catalog, operation, name)?;
                if existing.as_ref().is_some_and(|existing| existing.is_capped()) {
                    let message = format!("namespace '{name}' is capped so it can't be used for $out");
                    return Err(Failure::new(ErrorCode(17152), message));
                }
                Ok(Self::Collection(existing))
            }
        }
    }

    /// The collection that is replaced, if there is one.
    fn existing(&self) -> Option<&Arc<Collection>> {
        match self {
            Self::Collection(existing) | Self::Series(_, existing) => existing.as_ref(),
        }
    }

    /// The name of the collection that is replaced.
    fn place(&self, name: &Namespace) -> Result<Namespace> {
        match self {
            Self::Collection(_) => Ok(name.clone()),
            Self::Series(..) => bunko_series::buckets_of(name),
        }
    }
}

pub(super) fn run(
    context: &mut WriteContext<'_>,
    name: &Namespace,
    asked: Option<&TimeSeries>,
    documents: &mut dyn DocumentStream,
) -> Result<()> {
    let (catalog, operation) = (context.catalog, context.operation);
    let temporary = Namespace::new(name.database(), &format!("tmp.agg_out.{:016x}", (context.random)()))?;
    let outcome = fill(context, &temporary, name, asked, documents).and_then(|()| {
        // The target is looked up again: it may have changed while the documents were written.
        let target = OutputTarget::of(catalog, operation, name, asked)?;
        let lsn = catalog.rename(&temporary, &target.place(name)?, RenameTarget::DropIfAlike, operation)?;
        context.note_written(Some(lsn));
        if target.existing().is_none() {
            operation.note_created(name.to_string());
        }
        match target {
            OutputTarget::Series(series, None) => {
                let view = bunko_series::view(name, &series, None)?;
                context.note_written(catalog.create_view(name, &view, operation)?);
                Ok(())
            }
            _ => Ok(()),
        }
    });
    outcome.or_else(|failure| {
        catalog.drop_collection(&temporary, &*context.own_operation)?;
        Err(failure)
    })
}

/// Creates a collection with the options and indexes of the target, and inserts the documents.
fn fill(
    context: &mut WriteContext<'_>,
    temporary: &Namespace,
    name: &Namespace,
    asked: Option<&TimeSeries>,
    documents: &mut dyn DocumentStream,
) -> Result<()> {
    let (catalog, operation) = (context.catalog, context.operation);
    let target = OutputTarget::of(catalog, operation, name, asked)?;
    let mut create = CreateOptions::default();
    let mut indexes = Vec::new();
    match (&target, target.existing()) {
        (_, Some(existing)) => {
            create.options = (*existing.options()).clone();
            create.engine = Some(existing.engine.clone());
            for index in existing.ready_indexes().iter().filter(|index| !index.is_id()) {
                indexes.push(IndexSpec::parse(index.document.as_ref())?);
            }
        }
        (OutputTarget::Series(series, None), None) => {
            create.options = bunko_series::bucket_options(series);
            indexes.extend(bunko_series::bucket_index(series)?);
        }
        _ => {}
    }
    let (collection, lsn) = catalog.create(temporary, create, operation)?;
    context.note_written(Some(lsn));
    if !indexes.is_empty() {
        catalog.create_indexes(&collection, &indexes, operation)?;
    }
    let series = match target {
        OutputTarget::Collection(_) => None,
        OutputTarget::Series(options, _) => Some(Series { options, buckets: collection }),
    };
    while let Some(batch) = next_batch(context.stamps, documents)? {
        let mut inserted = match &series {
            Some(series) => context.series().insert(series, &batch, Order::Ordered),
            None => catalog.insert(temporary, &batch, Order::Ordered, operation)?,
        };
        context.note_written(inserted.lsn);
        if let Some(failure) = inserted.failures.pop().map(|(_, failure)| failure).or(inserted.stopped_by) {
            return Err(failure);
        }
    }
    Ok(())
}

/// Reads the next batch of documents, in stored form; `None` at the end.
fn next_batch(stamps: &dyn Stamps, documents: &mut dyn DocumentStream) -> Result<Option<Vec<Cow<'static, [u8]>>>> {
    let mut batch: Vec<Cow<'static, [u8]>> = Vec::new();
    let mut batch_bytes = 0;
    while batch.len() < BATCH_COUNT_MAX && batch_bytes < BATCH_BYTES_MAX {
        let Some(document) = documents.next()? else { break };
        let stored = stored_document::for_insert(document.as_ref(), EmptyTimestamps::Filled, stamps)?;
        batch_bytes += stored.len();
        batch.push(Cow::Owned(stored.into_owned()));
    }
    Ok((!batch.is_empty()).then_some(batch))
}
