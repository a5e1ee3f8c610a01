//! Renames a collection into another database if the oplog records it. A client that follows only the new database must
//! see every document. So the documents are copied to a temporary collection, which then takes the new name in one
//! step.
//!
//! If the server is killed before that step, the source and a collection with the temporary name exist; right after it,
//! both the source and the copy do.

use crate::new_documents::InsertedInto;
use crate::rename::source_not_found;
use crate::transaction::{announce, exclude_all};
use crate::user_writes;
use crate::validator::without_validator;
use crate::waiting::lock;
use crate::{Catalog, Collection, CreateOptions, IndexSpec, Namespace, RenameTarget};
use bunko_bson::DocumentBuf;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationSource;
use bunko_store::Lsn;
use std::sync::Arc;

/// The source and the target of a move.
pub struct Move<'a> {
    /// The collection.
    pub from: &'a Namespace,
    /// The new name, in another database.
    pub to: &'a Namespace,
    /// The name of the copy until it is complete, in the database of `to`.
    pub temporary: &'a Namespace,
    /// The fate of a collection that already has the new name.
    pub replace: RenameTarget,
}

impl Catalog {
    /// Whether a rename must be recorded as inserts of the documents.
    pub fn moves_by_copy(&self, from: &Namespace, to: &Namespace) -> bool {
        from.database() != to.database() && (self.tells_of(from) || self.tells_of(to))
    }

    /// Moves a collection with its options and indexes. `own` is an internal operation, which no client can stop: it
    /// removes the temporary collection after a failure, and the source once the copy has its name.
    /// # Errors
    /// `NamespaceNotFound`; `NamespaceExists` if the target exists and is kept;
    /// `BackgroundOperationInProgressForNamespace` while an index is built; as `OperationContext::check`. The source
    /// and the target stay as they were then.
    pub fn move_across(
        &self,
        moved: &Move<'_>,
        operation: &dyn OperationSource,
        own: &dyn OperationSource,
    ) -> Result<Lsn> {
        user_writes::check(moved.from, operation)?;
        user_writes::check(moved.to, operation)?;
        self.refuse_view(moved.from)?;
        self.rename_target(moved.to, moved.replace)?;
        let source = self.collection(moved.from).ok_or_else(|| source_not_found(moved.from))?;
        let options = (*source.options()).clone();
        let specs = specs_of(&source)?;
        let create = CreateOptions {
            options: without_validator(&options),
            engine: Some(source.engine.clone()),
            ..CreateOptions::default()
        };
        let (copy, _) = self.create(moved.temporary, create, operation)?;
        let outcome = self.fill_and_rename(moved, &source, (&copy, &specs), &options, operation, own);
        if outcome.is_err() {
            self.drop_collection(moved.temporary, own)?;
        }
        outcome
    }

    fn fill_and_rename(
        &self,
        moved: &Move<'_>,
        source: &Arc<Collection>,
        (copy, specs): (&Arc<Collection>, &[IndexSpec]),
        options: &DocumentBuf,
        operation: &dyn OperationSource,
        own: &dyn OperationSource,
    ) -> Result<Lsn> {
        if !specs.is_empty() {
            self.create_indexes(copy, specs, operation)?;
        }
        let present = [self.collection(moved.from), self.collection(moved.to)];
        let present = present.iter().flatten().map(|present| announce(present, operation));
        let _announced = present.collect::<Result<Vec<_>>>()?;
        let mut changes = lock(&self.changes, operation)?;
        let is_source = |found: &Arc<Collection>| Arc::ptr_eq(found, source);
        self.collection(moved.from).filter(is_source).ok_or_else(|| source_not_found(moved.from))?;
        let target = self.rename_target(moved.to, moved.replace)?;
        {
            let _no_writer = exclude_all(source, operation)?;
            if specs_of(source)?.len() != specs.len() {
                return Err(changed(moved.from));
            }
            self.copy_newest(source, copy, InsertedInto::Log, operation)?;
            let _none_to_the_copy = exclude_all(copy, operation)?;
            let _none_to_the_target = target.as_ref().map(|target| exclude_all(target, operation)).transpose()?;
            copy.set_search_indexes((*source.search_indexes()).clone());
            self.commit_rename(copy, target.as_ref(), moved.to, Some(options))?;
        }
        let dropped = self.drop_under(&mut changes, moved.from, own)?;
        Ok(dropped.ok_or_else(|| source_not_found(moved.from))?.lsn)
    }
}

/// The specifications of all indexes except the one on `_id`.
fn specs_of(source: &Collection) -> Result<Vec<IndexSpec>> {
    let indexes = source.indexes();
    if indexes.iter().any(|index| index.build().is_some()) {
        return Err(changed(&source.namespace()));
    }
    indexes.iter().filter(|index| !index.is_id()).map(|index| IndexSpec::parse(index.document.as_ref())).collect()
}

fn changed(namespace: &Namespace) -> Failure {
    let message = format!("cannot perform operation: an index build is currently running for collection '{namespace}'");
    Failure::new(ErrorCode::BACKGROUND_OPERATION_IN_PROGRESS_FOR_NAMESPACE, message)
}
