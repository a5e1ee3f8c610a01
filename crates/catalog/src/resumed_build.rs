//! Index builds that the end of a process interrupted: the next start begins them again, in new
//! keyspaces.

use crate::building::IndexBuild;
use crate::catalog::Difference;
use crate::{Catalog, Collection, Index, IndexState};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::{OperationContext, OperationSource};
use std::sync::Arc;

/// Indexes of one collection that an earlier process began to build.
pub struct InterruptedBuild {
    collection: Arc<Collection>,
    indexes: Vec<Arc<Index>>,
}

impl InterruptedBuild {
    /// The collection of the indexes.
    pub fn collection(&self) -> &Collection {
        &self.collection
    }

    /// The indexes.
    pub fn indexes(&self) -> &[Arc<Index>] {
        &self.indexes
    }
}

/// A build that could not be resumed after a start.
#[derive(Debug)]
pub struct UnfinishedBuild {
    /// The namespace of the collection.
    pub namespace: String,
    /// The names of the indexes.
    pub indexes: Vec<String>,
    /// The failure that ended the build.
    pub failure: Failure,
    /// Whether the indexes were dropped or kept.
    pub fate: UnfinishedFate,
}

/// The fate of indexes whose build could not be resumed after a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnfinishedFate {
    /// The indexes are dropped: the documents do not permit them.
    Dropped,
    /// The next start tries again.
    Kept,
}

impl Catalog {
    /// Builds that an earlier process did not finish. Call this before clients connect, because it would list builds
    /// that they begin too.
    pub fn interrupted_builds(&self) -> Vec<InterruptedBuild> {
        let databases = self.databases().into_iter();
        let collections = databases.flat_map(|database| self.collections(&database));
        let builds = collections.map(|collection| {
            let indexes = collection.indexes();
            let begun = indexes.iter().filter(|index| index.state() == IndexState::Building);
            InterruptedBuild { indexes: begun.cloned().collect(), collection }
        });
        builds.filter(|build| !build.indexes.is_empty()).collect()
    }

    /// Runs the builds that an earlier process did not finish, and returns the builds that failed.
    pub fn resume_builds(&self, operation: &dyn OperationSource) -> Vec<UnfinishedBuild> {
        self.interrupted_builds().iter().filter_map(|build| self.resume_build(build, operation)).collect()
    }

    /// Builds the indexes of one collection anew. Returns the failure, if any, unless the build was aborted.
    pub fn resume_build(
        &self,
        interrupted: &InterruptedBuild,
        operation: &dyn OperationSource,
    ) -> Option<UnfinishedBuild> {
        let InterruptedBuild { collection, indexes: begun } = interrupted;
        let build = Arc::new(IndexBuild::default());
        let outcome = self.begin_anew(collection, begun, &build).and_then(|built| {
            let outcome = self.build(collection, &built, &build, operation);
            if outcome.as_ref().is_err_and(|failure| !is_for_the_next_start(failure.code())) {
                self.remove_indexes(collection, &built)?;
            }
            outcome
        });
        begun.iter().filter_map(|index| index.build.as_ref()).for_each(|build| build.end());
        build.end();
        let failure = outcome.err()?;
        if failure.code() == ErrorCode::INDEX_BUILD_ABORTED {
            return None;
        }
        let fate = if is_for_the_next_start(failure.code()) { UnfinishedFate::Kept } else { UnfinishedFate::Dropped };
        let names = begun.iter().map(|index| index.name.clone()).collect();
        Some(UnfinishedBuild { namespace: collection.namespace().to_string(), indexes: names, failure, fate })
    }

    /// Replaces indexes by empty ones, because it is not known which of their keys are still right.
    fn begin_anew(
        &self,
        collection: &Collection,
        begun: &[Arc<Index>],
        build: &Arc<IndexBuild>,
    ) -> Result<Vec<Arc<Index>>> {
        let mut changes = self.changes.lock();
        self.refuse_while_stopping()?;
        let mut indexes = collection.indexes().as_ref().clone();
        let (mut left, mut built) = (Vec::new(), Vec::new());
        for old in begun {
            let Some(place) = indexes.iter_mut().find(|index| index.keyspace == old.keyspace) else { continue };
            let keyspace = self.allocate_keyspace(&mut changes)?;
            let index = Arc::new(Index::new(place.spec().clone(), keyspace).built_by(Arc::clone(build)));
            built.push(Arc::clone(&index));
            left.push(std::mem::replace(place, index));
        }
        let difference = Difference::Replaced(&left, &built);
        self.save_indexes(collection, indexes, difference, &*OperationContext::unlimited())?;
        Ok(built)
    }
}

/// Whether a build that failed with this code may succeed after another start.
fn is_for_the_next_start(code: ErrorCode) -> bool {
    [
        ErrorCode::INTERRUPTED_AT_SHUTDOWN,
        ErrorCode::INTERRUPTED_DUE_TO_REPL_STATE_CHANGE,
        ErrorCode::INTERNAL_ERROR,
        ErrorCode::OUT_OF_DISK_SPACE,
        ErrorCode::EXCEEDED_MEMORY_LIMIT,
    ]
    .contains(&code)
}
