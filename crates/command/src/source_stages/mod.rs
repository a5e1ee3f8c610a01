//! Stages that begin a pipeline with documents of their own instead of a collection's: one file and one line each.
//!
//! They stand here and not with the other stages, which are pure: these look at the server.

mod coll_stats;
mod current_op;
mod index_stats;
mod list_cluster_catalog;
mod list_sessions;
mod plan_cache_stats;
mod query_settings;
mod query_stats;

use crate::invocation::Invocation;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};

static STAGES: &[SourceStage] = &[
    coll_stats::STAGE,
    current_op::STAGE,
    index_stats::STAGE,
    list_cluster_catalog::STAGE,
    list_sessions::ALL,
    list_sessions::LOCAL,
    plan_cache_stats::STAGE,
    query_settings::STAGE,
    query_stats::STAGE,
];

/// One entry of the table.
pub(crate) struct SourceStage {
    /// With its `$`.
    pub name: &'static str,
    pub subject: Subject,
    /// Reads the specification and makes the documents.
    documents: fn(&Invocation<'_>, &Namespace, ValueRef<'_>) -> Result<Vec<DocumentBuf>>,
}

/// What a source stage speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The collection that `aggregate` names.
    Collection,
    /// The server: it goes with `{aggregate: 1}`.
    Server,
    /// No collection: it goes with `{aggregate: 1}` on any database.
    Database,
}

/// A pipeline that begins with a source stage.
pub(crate) struct SourcedPipeline<'a> {
    pub stage: &'static SourceStage,
    specification: ValueRef<'a>,
    /// The stages behind it.
    pub rest: ArrayBuf,
}

impl<'a> SourcedPipeline<'a> {
    /// Takes the source stage off a pipeline, if it has one.
    /// # Errors
    /// Location40602 where a source stage is not the first.
    pub(crate) fn take_off(pipeline: ArrayRef<'a>) -> Result<Option<Self>> {
        if let Some((stage, _)) = pipeline.iter().skip(1).find_map(source_stage) {
            return Err(Failure::new(
                ErrorCode(40602),
                format!("{} is only valid as the first stage in a pipeline.", stage.name),
            ));
        }
        let is_documents = |stage: ValueRef<'_>| {
            stage.as_document().and_then(DocumentRef::first).is_some_and(|first| first.name == "$documents")
        };
        if pipeline.iter().skip(1).any(is_documents) {
            let message = "$documents is only valid as the first stage in a pipeline.";
            return Err(Failure::new(ErrorCode(40602), message));
        }
        let first = pipeline.iter().next().and_then(source_stage);
        Ok(first.map(|(stage, specification)| Self { stage, specification, rest: pipeline.iter().skip(1).collect() }))
    }

    /// What the source stage puts into the pipeline.
    /// # Errors
    /// Those of a malformed specification.
    pub(crate) fn documents(&self, invocation: &Invocation<'_>, namespace: &Namespace) -> Result<Vec<DocumentBuf>> {
        (self.stage.documents)(invocation, namespace, self.specification)
    }
}

/// What the source stage of that name speaks of, if it is one.
pub(crate) fn subject_of(name: &str) -> Option<Subject> {
    STAGES.iter().find(|entry| entry.name == name).map(|entry| entry.subject)
}

/// The entry for a stage, and its specification. One with several fields is for the pipeline's parser to refuse.
fn source_stage(stage: ValueRef<'_>) -> Option<(&'static SourceStage, ValueRef<'_>)> {
    let stage = stage.as_document().filter(|stage| stage.count() == 1)?.first()?;
    let entry = STAGES.iter().find(|entry| entry.name == stage.name)?;
    Some((entry, stage.value))
}
