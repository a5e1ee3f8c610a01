//! Pipelines that write: `$out` and `$merge`.

mod merge;
mod out;

use crate::invocation::Invocation;
use crate::unstored;
use bunko_aggregate::{DocumentStream, Environment, WriteStage};
use bunko_bson::StringOrder;
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};

/// A write at the end of a pipeline, whose target has been checked.
pub(crate) struct PipelineWrite {
    stage: WriteStage,
    target: Namespace,
}

impl PipelineWrite {
    /// Checks the target of a pipeline with that string order, also for `explain`.
    /// # Errors
    /// 31321 and 31320 for a database of the server; `InvalidNamespace`; `CommandNotSupported` for a collection of
    /// sessions; `CommandNotSupportedOnView`; 17152 for a capped collection; 7268700 and 7406103 if the target is not
    /// the time series that the stage describes; 51183 without a unique index that makes matches unique.
    pub(crate) fn new(invocation: &Invocation<'_>, stage: WriteStage, strings: &StringOrder) -> Result<Self> {
        let (name, database, collection) = match &stage {
            WriteStage::Out(out) => {
                (bunko_stages::OUT.name, out.name.database.as_deref(), out.name.collection.as_str())
            }
            WriteStage::Merge(merge) => {
                (bunko_stages::MERGE.name, merge.database.as_deref(), merge.collection.as_str())
            }
        };
        let database = database.unwrap_or(invocation.request.database);
        stage.check_database(database)?;
        let target = Namespace::new(database, collection)?;
        target.check_length().map_err(|failure| {
            Failure::new(ErrorCode::ILLEGAL_OPERATION, format!("error with target namespace: {}", failure.message()))
        })?;
        unstored::refuse(&invocation.service.catalog, &target, name)?;
        match &stage {
            WriteStage::Out(out) => drop(out::OutputTarget::of(invocation, &target, out.series.as_ref())?),
            WriteStage::Merge(merge) => merge::check(invocation, &target, merge, strings)?,
        }
        Ok(Self { stage, target })
    }

    /// Writes all documents of the pipeline.
    /// # Errors
    /// Errors of the pipeline and of the writes. A failed `$out` leaves the target unchanged.
    pub(crate) fn run(
        &self,
        invocation: &mut Invocation<'_>,
        documents: &mut dyn DocumentStream,
        environment: &Environment,
    ) -> Result<()> {
        match &self.stage {
            WriteStage::Out(out) => out::run(invocation, &self.target, out.series.as_ref(), documents),
            WriteStage::Merge(merge) => merge::run(invocation, (&self.target, merge), documents, environment),
        }
    }
}
