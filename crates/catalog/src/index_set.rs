//! The set of a collection's indexes: `createIndexes` and `dropIndexes`.

use crate::building::{IndexBuild, aborted};
use crate::catalog::{Allocation, Difference};
use crate::transaction::announce;
use crate::user_writes;
use crate::waiting::lock;
use crate::{Catalog, Collection, Index, IndexSpec, IndexState, Transaction};
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::{OperationContext, OperationSource};
use bunko_store::Lsn;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Maximum number of indexes of one collection, `_id` included.
const INDEXES_MAX: usize = 64;

/// The result of `dropIndexes`.
#[derive(Clone, Copy, Debug)]
pub struct IndexesDropped {
    /// Number of indexes before.
    pub before: usize,
    /// The LSN of the drop; `None` if no index was dropped.
    pub lsn: Option<Lsn>,
}

/// The result of `createIndexes`.
#[derive(Clone, Copy, Debug)]
pub struct IndexesCreated {
    /// Number of indexes before.
    pub before: usize,
    /// Number of indexes after.
    pub after: usize,
    /// The last LSN written; `None` if nothing was.
    pub lsn: Option<Lsn>,
}

/// The state of a request for indexes.
enum Request {
    /// All indexes exist.
    Present(IndexesCreated),
    /// Another request is building one of them.
    Awaits(Arc<IndexBuild>),
    /// The indexes `built` were missing; writers see them now, and the caller builds them.
    Begun { before: usize, built: Vec<Arc<Index>>, build: Arc<IndexBuild> },
}

impl Catalog {
    /// Builds the indexes that are missing. Indexes that exist under the same name and keys stay; this waits for those
    /// that another request is building.
    /// # Errors
    /// `IndexOptionsConflict`, `IndexKeySpecsConflict`, `CannotCreateIndex`, `DuplicateKey`, `IndexBuildAborted`, and
    /// as `OperationContext::check`; none of the new indexes is kept. `InterruptedAtShutdown`,
    /// `InterruptedDueToReplStateChange`: the next start or step-up continues the build.
    pub fn create_indexes(
        &self,
        collection: &Arc<Collection>,
        specs: &[IndexSpec],
        operation: &dyn OperationSource,
    ) -> Result<IndexesCreated> {
        user_writes::check_collection(collection, operation)?;
        if let Some(transaction) = Transaction::of(operation) {
            return transaction.create_indexes(collection, specs, operation);
        }
        loop {
            match self.request_indexes(collection, specs, operation)? {
                Request::Present(created) => return Ok(created),
                Request::Awaits(build) => build.wait(operation)?,
                Request::Begun { before, built, build } => {
                    let outcome = self.build(collection, &built, &build, operation);
                    // A build that a step-down interrupted is resumed, even if the member is the primary again by now.
                    let is_interrupted = |failure: &Failure| {
                        failure.code() == ErrorCode::INTERRUPTED_DUE_TO_REPL_STATE_CHANGE
                            || self.is_stopping.load(Ordering::Acquire)
                    };
                    if outcome.as_ref().is_err_and(|failure| !is_interrupted(failure)) {
                        // The user gets the failure of the build. If the indexes cannot be removed now, the next
                        // request for them removes them.
                        let _ = self.remove_indexes(collection, &built);
                    }
                    build.end();
                    return outcome.map(|lsn| IndexesCreated { before, after: before + built.len(), lsn: Some(lsn) });
                }
            }
        }
    }

    fn request_indexes(
        &self,
        collection: &Collection,
        specs: &[IndexSpec],
        operation: &dyn OperationSource,
    ) -> Result<Request> {
        let specs: Vec<IndexSpec> = specs.iter().map(|spec| spec.clone().with_strings(collection.strings())).collect();
        let specs = specs.as_slice();
        specs.iter().try_for_each(|spec| spec.kind.check_strings(&spec.strings))?;
        let mut changes = lock(&self.changes, operation)?;
        let existing = collection.indexes();
        let mut indexes = existing.as_ref().clone();
        let build = Arc::new(IndexBuild::default());
        let (mut built, mut abandoned) = (Vec::new(), Vec::new());
        for spec in specs {
            if let Some(present) = present(&indexes, spec)? {
                match present.build() {
                    Some(other) if Arc::ptr_eq(other, &build) => {}
                    Some(other) if !other.has_ended() => return Ok(Request::Awaits(Arc::clone(other))),
                    Some(_) => abandoned.push(Arc::clone(present)),
                    None => {}
                }
                continue;
            }
            let index = self.new_index(&mut changes, collection, &indexes, spec)?.built_by(Arc::clone(&build));
            indexes.push(Arc::new(index));
            built.extend(indexes.last().cloned());
        }
        if !abandoned.is_empty() {
            // These indexes are left of a build that failed and whose removal failed too.
            self.remove_locked(collection, &abandoned, operation)?;
            drop(changes);
            return self.request_indexes(collection, specs, operation);
        }
        if built.is_empty() {
            let count = counted(&existing);
            return Ok(Request::Present(IndexesCreated { before: count, after: count, lsn: None }));
        }
        // A step-down aborts the builds that it finds listed, and no build may begin after that.
        self.refuse_while_stopping()?;
        if !collection.occupancy.is_free() {
            drop(changes);
            let _announced = announce(collection, operation)?;
            return self.request_indexes(collection, specs, operation);
        }
        self.save_indexes(collection, indexes, Difference::Created(&built), operation)?;
        operation.operation().note_change();
        Ok(Request::Begun { before: counted(&existing), built, build })
    }

    pub(crate) fn new_index(
        &self,
        changes: &mut Allocation,
        collection: &Collection,
        indexes: &[Arc<Index>],
        spec: &IndexSpec,
    ) -> Result<Index> {
        if indexes.len() >= INDEXES_MAX {
            return Err(Failure::new(
                ErrorCode::CANNOT_CREATE_INDEX,
                format!("add index fails, too many indexes for {} key:{}", collection.namespace(), spec.name),
            ));
        }
        if let Some(other) = indexes.iter().find(|other| spec.kind.text().is_some() && other.kind.text().is_some()) {
            return Err(Failure::new(
                ErrorCode::INDEX_OPTIONS_CONFLICT,
                format!("only one text index per collection allowed, found existing text index \"{}\"", other.name),
            ));
        }
        let keyspace = self.allocate_keyspace(changes)?;
        Ok(Index::new(spec.clone(), keyspace))
    }

    /// Drops the indexes with these names, all or none.
    /// # Errors
    /// `IndexNotFound`; `InvalidOptions` for `_id_`; `BackgroundOperationInProgressForNamespace` for an index that is
    /// being built together with others that would stay.
    pub fn drop_indexes(
        &self,
        collection: &Collection,
        names: &[&str],
        operation: &dyn OperationSource,
    ) -> Result<IndexesDropped> {
        user_writes::check_collection(collection, operation)?;
        let _announced = announce(collection, operation)?;
        let _changes = lock(&self.changes, operation)?;
        let mut dropped = Vec::with_capacity(names.len());
        for name in names {
            let index = collection.index(name).ok_or_else(|| {
                Failure::new(ErrorCode::INDEX_NOT_FOUND, format!("index not found with name [{name}]"))
            })?;
            if index.is_clustered {
                let message = "Cannot drop the clustered index. Try dropping the collection instead.";
                return Err(Failure::new(ErrorCode(5_979_800), message));
            }
            if index.is_id() {
                return Err(Failure::new(ErrorCode::INVALID_OPTIONS, "cannot drop _id index"));
            }
            if dropped.iter().any(|other| Arc::ptr_eq(other, &index)) {
                let message = format!("index not found with name [{name}]");
                return Err(Failure::new(ErrorCode::INDEX_NOT_FOUND, message));
            }
            dropped.push(index);
        }
        self.drop_built(collection, &dropped, operation)
    }

    /// Drops all indexes except the one on `_id`.
    /// # Errors
    /// As `OperationContext::check`.
    pub fn drop_all_indexes(&self, collection: &Collection, operation: &dyn OperationSource) -> Result<IndexesDropped> {
        user_writes::check_collection(collection, operation)?;
        let _announced = announce(collection, operation)?;
        let _changes = lock(&self.changes, operation)?;
        let others: Vec<_> = collection.indexes().iter().filter(|index| !index.is_id()).cloned().collect();
        self.drop_built(collection, &others, operation)
    }

    /// Drops indexes, and aborts the builds of unfinished ones. A build must be dropped whole.
    fn drop_built(
        &self,
        collection: &Collection,
        dropped: &[Arc<Index>],
        operation: &dyn OperationSource,
    ) -> Result<IndexesDropped> {
        let indexes = collection.indexes();
        let is_dropped = |index: &Arc<Index>| dropped.iter().any(|dropped| Arc::ptr_eq(dropped, index));
        let builds: Vec<_> = dropped.iter().filter_map(|index| index.build()).collect();
        for left in indexes.iter().filter(|index| !is_dropped(index)) {
            if let Some(build) = left.build()
                && builds.iter().any(|aborted| Arc::ptr_eq(aborted, build))
            {
                return Err(Failure::new(
                    ErrorCode::BACKGROUND_OPERATION_IN_PROGRESS_FOR_NAMESPACE,
                    format!(
                        "cannot perform operation: an index build is currently running for collection '{}', and '{}' \
                         belongs to it too",
                        collection.namespace(),
                        left.name
                    ),
                ));
            }
        }
        let before = counted(&indexes);
        if dropped.is_empty() {
            return Ok(IndexesDropped { before, lsn: None });
        }
        if !builds.is_empty() {
            // The builder checks for an abort before each step, while it keeps the indexes from changing.
            operation.operation().note_change();
            for build in &builds {
                build.abort(aborted("dropIndexes command"));
            }
        }
        let lsn = self.remove_locked(collection, dropped, operation)?;
        Ok(IndexesDropped { before, lsn: Some(lsn) })
    }

    /// Removes those of `dropped` that still exist.
    pub(crate) fn remove_indexes(&self, collection: &Collection, dropped: &[Arc<Index>]) -> Result<()> {
        let _changes = self.changes.lock();
        let indexes = collection.indexes();
        let is_there = |index: &&Arc<Index>| indexes.iter().any(|other| Arc::ptr_eq(other, index));
        let dropped: Vec<_> = dropped.iter().filter(is_there).cloned().collect();
        if dropped.is_empty() || collection.is_dropped() {
            return Ok(());
        }
        // The removal ignores the operation's limits: if the operation was stopped, no later attempt would remove the
        // indexes.
        self.remove_locked(collection, &dropped, &*OperationContext::unlimited()).map(drop)
    }

    /// Changes options of an index that leave its keys as they are. `options` are merged into its specification; an
    /// option with the value null is removed.
    /// # Errors
    /// `IndexNotFound` if there is no complete index with this name; as [`IndexSpec::parse`].
    pub fn respecify_index(
        &self,
        collection: &Collection,
        name: &str,
        options: DocumentRef<'_>,
        operation: &dyn OperationSource,
    ) -> Result<Lsn> {
        user_writes::check_collection(collection, operation)?;
        let mut changes = lock(&self.changes, operation)?;
        self.respecify_under(&mut changes, collection, name, options, operation)
    }

    /// As [`Self::respecify_index`], for a caller that has locked the catalog's changes.
    pub(crate) fn respecify_under(
        &self,
        _changes: &mut Allocation,
        collection: &Collection,
        name: &str,
        options: DocumentRef<'_>,
        operation: &dyn OperationSource,
    ) -> Result<Lsn> {
        let mut indexes = collection.indexes().as_ref().clone();
        let is_meant = |index: &&mut Arc<Index>| index.name == name && index.state() == IndexState::Ready;
        let Some(index) = indexes.iter_mut().find(is_meant) else {
            return Err(Failure::new(ErrorCode::INDEX_NOT_FOUND, format!("index not found with name [{name}]")));
        };
        let before = options_before(index, options);
        let spec = index.spec().with_options(options)?;
        // A converted index keeps its keys, each of which ends with its record.
        let spec = if spec.is_unique && index.ends_with_record() { spec.converted() } else { spec };
        let changed = index.respecified(spec);
        changed.set_state(IndexState::Ready);
        *index = Arc::new(changed);
        let mut described = DocumentBuf::new().with("name", name);
        described.extend(options);
        let command = DocumentBuf::new().with("collMod", collection.namespace().collection());
        let command = command.with("index", &described);
        self.save_indexes(collection, indexes, Difference::Respecified(&command, &before), operation)
    }

    /// Removes indexes. The caller holds the lock of the catalog's changes.
    fn remove_locked(
        &self,
        collection: &Collection,
        dropped: &[Arc<Index>],
        operation: &dyn OperationSource,
    ) -> Result<Lsn> {
        let left = collection
            .indexes()
            .iter()
            .filter(|index| !dropped.iter().any(|dropped| Arc::ptr_eq(dropped, index)))
            .cloned()
            .collect();
        self.save_indexes(collection, left, Difference::Dropped(dropped), operation)
    }
}

/// The present values of options that are about to change, as the oplog records them.
fn options_before(index: &Index, options: DocumentRef<'_>) -> DocumentBuf {
    let mut before = DocumentBuf::new();
    for option in options {
        match (option.name, index.expire_after_seconds) {
            ("expireAfterSeconds", Some(seconds)) => before.append(option.name, i64::from(seconds)),
            ("hidden", _) => before.append(option.name, index.is_hidden),
            ("prepareUnique", _) => before.append(option.name, index.prepares_unique),
            _ => continue,
        };
    }
    before
}

/// Number of indexes as commands report it: the index of a clustered collection does not count.
pub(crate) fn counted(indexes: &[Arc<Index>]) -> usize {
    indexes.iter().filter(|index| !index.is_clustered).count()
}

/// The existing index that a specification asks for, if any.
pub(crate) fn present<'i>(indexes: &'i [Arc<Index>], spec: &IndexSpec) -> Result<Option<&'i Arc<Index>>> {
    let options_conflict = |message: String| Failure::new(ErrorCode::INDEX_OPTIONS_CONFLICT, message);
    for index in indexes {
        if index.is_id() && spec.is_id() && index.strings != spec.strings {
            return Err(Failure::bad_value("The _id index must have the same collation as the collection."));
        }
        let has_same_name = index.name == spec.name;
        let is_alike = index.is_alike(spec);
        if index.is_id() && spec.is_id() || has_same_name && is_alike && index.has_same_options(spec) {
            return Ok(Some(index));
        }
        let both = format!(
            "Requested index: {}, existing index: {}",
            ValueText(ValueRef::Document(spec.document.as_ref())),
            ValueText(ValueRef::Document(index.document.as_ref()))
        );
        if has_same_name && is_alike {
            return Err(options_conflict(format!(
                "An equivalent index already exists with the same name but different options. {both}"
            )));
        }
        if has_same_name {
            return Err(Failure::new(
                ErrorCode::INDEX_KEY_SPECS_CONFLICT,
                format!(
                    "An existing index has the same name as the requested index. When index names are not specified, \
                     they are auto generated and can cause conflicts. Please refer to our documentation. {both}"
                ),
            ));
        }
        if is_alike && index.has_same_options(spec) {
            return Err(options_conflict(format!("Index already exists with a different name: {}", index.name)));
        }
        if is_alike {
            return Err(options_conflict(format!(
                "An equivalent index already exists with a different name and options. {both}"
            )));
        }
    }
    Ok(None)
}
