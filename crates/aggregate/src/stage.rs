//! The interface of stages, and the entries of their table.

use crate::effect::Effect;
use crate::metadata::Carried;
use crate::near_search::GeoNear;
use crate::unwinding::Unwinding;
use crate::{DocumentStream, Environment, WriteStage};
use bunko_bson::{DocumentBuf, DocumentRef, StringUse, ValueRef};
use bunko_errors::Result;
use bunko_expression::{Dependencies, SortPattern};
use bunko_query::{Distinct, Inclusion};
use bunko_timeseries::TimeSeries;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A parsed stage.
pub trait Stage: Send + Sync {
    /// Name with its `$`.
    fn name(&self) -> &'static str;

    /// Opens the stage on top of a stream.
    fn open(self: Arc<Self>, input: Box<dyn DocumentStream>, environment: &Arc<Environment>)
    -> Box<dyn DocumentStream>;

    /// Whether the stage begins the pipeline with its own documents, and does not read the collection.
    fn brings_documents(&self) -> bool {
        false
    }

    /// The stage's work, if the query planner could do it instead.
    fn plannable(&self) -> Plannable<'_> {
        Plannable::Nothing
    }

    /// The distinct values that the stage needs of its input, if one document per value is enough.
    fn distinct(&self) -> Option<Distinct> {
        None
    }

    /// Number of documents that the stage chooses at random from its input, if it does.
    fn sample_size(&self) -> Option<u64> {
        None
    }

    /// Adds the input fields that the stage reads. Returns whether other input fields reach later stages.
    fn add_dependencies(&self, dependencies: &mut Dependencies) -> Reads;

    /// The stage's effect on its documents, for rewrites.
    fn effect(&self) -> Effect {
        Effect::Opaque
    }

    /// Adds a filter on the documents that the stage reads elsewhere; called only for the effects `Joins` and `Unites`.
    fn take_inside(&mut self, _filter: DocumentRef<'_>) -> Result<()> {
        Ok(())
    }

    /// Whether the stage's results are numbers of documents, whatever the documents are and in which order they come.
    fn counts_alone(&self) -> bool {
        false
    }

    /// Whether the stage makes exactly one document of each.
    fn makes_one_of_each(&self) -> bool {
        false
    }

    /// Whether the stage makes exactly one document of each, in their order, and fails for none.
    fn only_changes_documents(&self) -> bool {
        false
    }

    /// How the stage treats the metadata of documents.
    fn metadata(&self) -> Carried {
        Carried::Along
    }

    /// Takes over the work of the next stage. Returns whether it did; the next stage is then dropped.
    fn absorb(&mut self, _next: &dyn Stage) -> bool {
        false
    }

    /// The stage's work, if it is an `$unwind`.
    fn unwinding(&self) -> Option<Unwinding> {
        None
    }

    /// The stage's write, if it is `$out` or `$merge`.
    fn write(&self) -> Option<WriteStage> {
        None
    }

    /// For a filter after a stage that unpacks buckets: a filter on the buckets. Buckets that it excludes contain
    /// nothing that the stage's filter would accept.
    fn bucket_filter(&self, _filter: DocumentRef<'_>) -> Option<DocumentBuf> {
        None
    }

    /// The time series whose measurements the stage unpacks, if it unpacks any.
    fn unpacked(&self) -> Option<&TimeSeries> {
        None
    }

    /// Tells the stage to copy these input fields into each measurement that it unpacks.
    fn keep(&mut self, _fields: Vec<String>) {}

    /// Whether the stage is a text search, which only the planner can run.
    fn searches_text(&self) -> bool {
        false
    }

    /// Tells the stage that MongoDB's slot-based engine hands its documents to the classic engine.
    fn hand_over(&mut self) {}

    /// Tells the stage that at most this many of its documents are read. Returns whether that saves work.
    fn read_at_most(&mut self, _limit: u64) -> bool {
        false
    }

    /// Tells the stage that only these dotted paths of its documents are read.
    fn read_only(&mut self, _fields: &BTreeSet<String>) {}
}

/// Work of a stage that the query planner could do.
#[derive(Clone, Copy)]
pub enum Plannable<'a> {
    /// Keep documents that match this filter.
    Filter(DocumentRef<'a>),
    /// Find the collection's documents by distance; only filters may come before.
    Near(&'a GeoNear),
    /// Sort by this pattern.
    Sort(&'a SortPattern),
    /// Skip this many.
    Skip(u64),
    /// Return at most this many, never 0.
    Limit(u64),
    /// Leave out all fields that this projection does not name.
    Projection(&'a Inclusion),
    /// Nothing.
    Nothing,
}

/// The input fields that reach later stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Only results of the fields that the stage reads.
    OnlyThese,
    /// Other input fields too.
    OthersToo,
}

/// Stages parsed from one specification; some stages expand to several.
pub(crate) type Stages = Vec<Box<dyn Stage>>;

/// One entry of the table.
pub(crate) struct Definition {
    /// The stage's entry in the table of all stages.
    pub facts: &'static bunko_stages::Stage,
    /// Whether the stage itself compares strings, apart from its expressions.
    #[cfg_attr(not(test), expect(dead_code, reason = "the test that walks the table reads it"))]
    pub strings: StringUse,
    /// Parses the specification.
    pub parse: fn(ValueRef<'_>, &Environment) -> Result<Stages>,
}

/// Whether MongoDB has a stage with that name, supported here or not.
pub fn is_known_stage(name: &str) -> bool {
    bunko_stages::find(name).is_some()
}
