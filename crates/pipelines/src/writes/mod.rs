//! Pipelines that write: `$out` and `$merge`.

mod context;
mod merge;
mod out;

use crate::context::PipelineContext;
use crate::unstored;
use bunko_aggregate::{DocumentStream, Environment, WriteStage};
use bunko_bson::StringOrder;
use bunko_catalog::{Catalog, Collection, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;
use std::sync::Arc;

pub use context::WriteContext;

/// A write at the end of a pipeline, whose target has been checked.
pub struct PipelineWrite {
    stage: WriteStage,
    target: Namespace,
}

impl PipelineWrite {
    /// Checks the target of a pipeline with that string order, also for `explain`.
    /// # Errors
    /// 31321 and 31320 for a database of the server; `InvalidNamespace`; `CommandNotSupported` for a collection of
    /// sessions; `CommandNotSupportedOnView`; 17152 for a capped collection; 7268700 and 7406103 if the target is not
    /// the time series that the stage describes; 51183 without a unique index that makes matches unique.
    pub fn new(context: &dyn PipelineContext, stage: WriteStage, strings: &StringOrder) -> Result<Self> {
        let surroundings = context.surroundings();
        let (catalog, operation) = (&*surroundings.catalog, &*surroundings.operation);
        let (name, database, collection) = match &stage {
            WriteStage::Out(out) => {
                (bunko_stages::OUT.name, out.name.database.as_deref(), out.name.collection.as_str())
            }
            WriteStage::Merge(merge) => {
                (bunko_stages::MERGE.name, merge.database.as_deref(), merge.collection.as_str())
            }
        };
        let database = database.unwrap_or(context.request().database);
        stage.check_database(database)?;
        let target = Namespace::new(database, collection)?;
        target.check_length().map_err(|failure| {
            Failure::new(ErrorCode::ILLEGAL_OPERATION, format!("error with target namespace: {}", failure.message()))
        })?;
        unstored::refuse(catalog, &target, name)?;
        match &stage {
            WriteStage::Out(out) => drop(out::OutputTarget::of(catalog, operation, &target, out.series.as_ref())?),
            WriteStage::Merge(merge) => {
                merge::check(collection_not_view(catalog, operation, &target)?.as_deref(), merge, strings)?;
            }
        }
        Ok(Self { stage, target })
    }

    /// Writes all documents of the pipeline.
    /// # Errors
    /// Errors of the pipeline and of the writes. A failed `$out` leaves the target unchanged.
    pub fn run(
        &self,
        context: &mut WriteContext<'_>,
        documents: &mut dyn DocumentStream,
        environment: &Environment,
    ) -> Result<()> {
        match &self.stage {
            WriteStage::Out(out) => out::run(context, &self.target, out.series.as_ref(), documents),
            WriteStage::Merge(merge) => merge::run(context, (&self.target, merge), documents, environment),
        }
    }
}

/// Finds the collection of that name; `None` if nothing has the name.
/// # Errors
/// `CommandNotSupportedOnView` if a view has the name.
fn collection_not_view(
    catalog: &Catalog,
    operation: &OperationContext,
    name: &Namespace,
) -> Result<Option<Arc<Collection>>> {
    let collection = catalog.collection_for(name, operation);
    if collection.is_none() {
        catalog.refuse_view(name)?;
    }
    Ok(collection)
}
