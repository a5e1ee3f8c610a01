//! Collections that are not stored: the oplog, which is generated from the log, and the collections of `config` about
//! sessions. Their documents are generated while they are read.
//!
//! This module is the only place that says which commands and stages work on such a collection. Every command and stage
//! that uses one, by name, through a view or inside another pipeline, gets the documents, statistics or errors defined
//! here.
//!
//! The planner takes no stage of a pipeline over such a collection. The test
//! `every_way_to_read_meets_all_documents_or_is_refused` walks the kinds of collections and the ways to read them.

use crate::collection_statistics::CollectionStatistics;
use crate::oplog;
use crate::session_collections::SessionCollection;
use crate::surroundings::Surroundings;
use crate::unindexed::{check_searches, direction};
use bunko_aggregate::{DocumentStream, Pipeline};
use bunko_catalog::{Catalog, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_query::Hint;
use bunko_request::deployment::Deployment;
use bunko_request::facts::{CommandFacts, UnstoredUse};
use bunko_stages::UnstoredUse as StageUse;

/// A collection that is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unstored {
    /// `local.oplog.rs`, if the log is kept for it.
    Oplog,
    /// A collection of `config` about sessions.
    Sessions(SessionCollection),
}

impl Unstored {
    /// The unstored collection that a namespace resolves to, if any.
    pub fn at(catalog: &Catalog, namespace: &Namespace) -> Option<Self> {
        if oplog::is_oplog(catalog, namespace) {
            return Some(Self::Oplog);
        }
        SessionCollection::at(catalog, namespace).map(Self::Sessions)
    }

    /// Opens the documents for a pipeline, of which the planner has taken no part. There are no indexes, so a hint can
    /// only choose the direction.
    /// # Errors
    /// `BadValue` for an index hint; `IndexNotFound` for a search; `InvalidOptions` for a past state of sessions, which is
    /// not kept.
    pub(crate) fn open(
        self,
        surroundings: &Surroundings,
        pipeline: &Pipeline,
        hint: Option<&Hint>,
    ) -> Result<Box<dyn DocumentStream>> {
        let direction = direction(hint)?;
        check_searches(pipeline)?;
        match self {
            Self::Oplog => oplog::open(&surroundings.catalog, pipeline, direction, &surroundings.operation),
            Self::Sessions(sessions) => sessions.open(surroundings, pipeline),
        }
    }

    /// Statistics of the unstored collection, for commands and stages whose entries allow them.
    /// # Errors
    /// Errors of reading it.
    pub fn statistics(self, surroundings: &Surroundings) -> Result<Option<CollectionStatistics>> {
        match self {
            Self::Oplog => oplog::statistics(surroundings).map(Some),
            Self::Sessions(_) => Ok(None),
        }
    }

    /// Refuses a stage that reports on a stored collection.
    /// # Errors
    /// `CommandNotSupported`.
    pub(crate) fn check_stage(self, stage: &bunko_stages::Stage, namespace: &Namespace) -> Result<()> {
        let is_known = match self {
            Self::Oplog => stage.unstored == StageUse::Oplog,
            Self::Sessions(_) => stage.unstored == StageUse::Sessions,
        };
        if is_known { Ok(()) } else { Err(self.refusal(stage.name, namespace)) }
    }

    /// The error for an operation that the unstored collection does not support.
    pub fn refusal(self, what: &str, namespace: &Namespace) -> Failure {
        let kind = match self {
            Self::Oplog => "log",
            Self::Sessions(_) => "sessions",
        };
        let message = format!(
            "{what} is not supported on {namespace}, a view of the {kind} that only find, aggregate, count and distinct read"
        );
        Failure::new(ErrorCode::COMMAND_NOT_SUPPORTED, message)
    }
}

/// Refuses operations that the collection of that name does not support, if it is an unstored one. `reader` is the
/// command that would use it: the running command, or the one inside `explain`.
/// # Errors
/// `CommandNotSupported`; `CannotCreateIndex` and `IllegalOperation` for indexes; 5255000 or 5255001 for dropping the
/// oplog.
pub fn check(catalog: &Catalog, deployment: Deployment, namespace: &Namespace, reader: &CommandFacts) -> Result<()> {
    let Some(unstored) = Unstored::at(catalog, namespace) else { return Ok(()) };
    match (unstored, reader.unstored) {
        (_, UnstoredUse::Reads) | (Unstored::Oplog, UnstoredUse::ReadsOplog) => Ok(()),
        (Unstored::Oplog, UnstoredUse::RefusedAsDrop) => Err(oplog::cannot_be_dropped(deployment)),
        (Unstored::Oplog, UnstoredUse::RefusedAsIndexBuild) => {
            Err(Failure::new(ErrorCode::CANNOT_CREATE_INDEX, format!("{namespace} cannot have an index")))
        }
        (Unstored::Sessions(SessionCollection::Transactions), UnstoredUse::RefusedAsIndexBuild) => {
            let message = format!("Cannot create indexes on {namespace}, which the server alone writes");
            Err(Failure::new(ErrorCode::ILLEGAL_OPERATION, message))
        }
        (Unstored::Oplog | Unstored::Sessions(_), _) => Err(unstored.refusal(reader.name, namespace)),
    }
}

/// Refuses any operation on the collection of that name, if it is an unstored one.
/// # Errors
/// `CommandNotSupported`.
pub fn refuse(catalog: &Catalog, namespace: &Namespace, what: &str) -> Result<()> {
    Unstored::at(catalog, namespace).map_or(Ok(()), |unstored| Err(unstored.refusal(what, namespace)))
}
