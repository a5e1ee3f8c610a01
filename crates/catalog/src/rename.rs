//! Renames collections. A rename is one record of the log. If the oplog is kept, a rename into another database copies
//! the documents instead: see `move_across`.

use crate::transaction::{announce, exclude_all};
use crate::user_writes;
use crate::waiting::lock;
use crate::{Catalog, Collection, Namespace, from_storage, notes, persistence};
use bunko_bson::{BinarySubtype, DocumentBuf, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationSource;
use bunko_store::{Batch, Lsn};
use std::sync::Arc;

/// The fate of a collection that already has the new name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenameTarget {
    /// The collection stays, and the rename is refused.
    Keep,
    /// The collection is dropped.
    Drop,
    /// The collection is dropped if its options and indexes equal those of its replacement, which was modelled on it.
    /// Otherwise the rename is refused: a change made meanwhile would be lost silently.
    DropIfAlike,
}

/// Checks that the target still equals the source, which was modelled on it.
/// # Errors
/// `CommandFailed` if options or indexes of the target differ from those of the source.
fn refuse_unlike(source: &Collection, target: &Collection) -> Result<()> {
    let changed = |what: &str| {
        let message = format!("{what} of target collection {} changed during processing", target.namespace());
        Err(Failure::new(ErrorCode::COMMAND_FAILED, message))
    };
    if source.options() != target.options() {
        return changed("collection options");
    }
    let (own, others) = (source.ready_indexes(), target.ready_indexes());
    let has = |document: &DocumentBuf| own.iter().any(|index| index.document == *document);
    if own.len() != others.len() || !others.iter().all(|index| has(&index.document)) {
        return changed("indexes");
    }
    Ok(())
}

impl Catalog {
    /// Renames a collection. A collection with the new name is dropped if `replace` allows it.
    /// # Errors
    /// `NamespaceNotFound`; `NamespaceExists` if the target exists and is kept; `IllegalOperation` if both names are
    /// equal; `CommandFailed` if the two should be alike but are not.
    pub fn rename(
        &self,
        from: &Namespace,
        to: &Namespace,
        replace: RenameTarget,
        operation: &dyn OperationSource,
    ) -> Result<Lsn> {
        // Checked first, because the same collection's structure cannot be locked twice.
        if from == to {
            return Err(Failure::new(ErrorCode::ILLEGAL_OPERATION, "Can't rename a collection to itself"));
        }
        user_writes::check(from, operation)?;
        user_writes::check(to, operation)?;
        let present = [from, to].map(|namespace| self.collection(namespace));
        let present = present.iter().flatten().map(|present| announce(present, operation));
        let _announced = present.collect::<Result<Vec<_>>>()?;
        let _changes = lock(&self.changes, operation)?;
        self.refuse_view(from)?;
        let source = self.collection(from).ok_or_else(|| source_not_found(from))?;
        let target = self.rename_target(to, replace)?;
        let _no_writer = exclude_all(&source, operation)?;
        let _no_writer_either = target.as_ref().map(|target| exclude_all(target, operation)).transpose()?;
        match &target {
            None => self.refuse_other_case(to.database())?,
            Some(target) if replace == RenameTarget::DropIfAlike => refuse_unlike(&source, target)?,
            Some(_) => {}
        }
        self.commit_rename(&source, target.as_ref(), to, None)
    }

    /// The collection that has the new name and will be dropped, if there is one.
    /// # Errors
    /// `NamespaceExists` if the name belongs to a view or the oplog, or if the collection is kept.
    pub(crate) fn rename_target(&self, to: &Namespace, replace: RenameTarget) -> Result<Option<Arc<Collection>>> {
        let target = self.collection(to);
        if target.is_none() && self.view(to)?.is_some() {
            let message = format!("a view already exists with that name: {to}");
            return Err(Failure::new(ErrorCode::NAMESPACE_EXISTS, message));
        }
        if self.shows_oplog(to) || target.is_some() && replace == RenameTarget::Keep {
            return Err(Failure::new(ErrorCode::NAMESPACE_EXISTS, "target namespace exists"));
        }
        Ok(target)
    }

    /// Renames `source` to `to`, sets its options if any are given, and drops `target`. The caller has locked the
    /// catalog's changes and keeps writers out of both collections.
    pub(crate) fn commit_rename(
        &self,
        source: &Arc<Collection>,
        target: Option<&Arc<Collection>>,
        to: &Namespace,
        options: Option<&DocumentBuf>,
    ) -> Result<Lsn> {
        let mut batch = Batch::new();
        if let Some(target) = target {
            self.put_drop(&mut batch, target)?;
        }
        let from = source.namespace();
        let mut renamed = DocumentBuf::new().with("renameCollection", from.as_str()).with("to", to.as_str());
        renamed.append("stayTemp", false);
        if let Some(target) = target {
            renamed.append("dropTarget", ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &target.uuid });
        }
        notes::put_command(&mut batch, source, &renamed);
        if let Some(command) = options.and_then(|options| validation_command(to, options)) {
            notes::put_command(&mut batch, source, &command);
        }
        let mut record = persistence::encode(source, to, &source.indexes());
        if let Some(options) = options {
            record = persistence::with_options(record.as_ref(), options);
        }
        persistence::put(&self.store, &mut batch, source.catalog_record, record)?;
        let lsn = self.store.commit(&batch).map_err(from_storage)?;
        source.occupancy.note_change(lsn);
        self.past_states.note_removed(&self.store, &from, lsn);
        if let Some(options) = options {
            source.set_options(options.clone());
        }
        let mut collections = self.collections.write();
        if let Some(target) = target {
            target.set_dropped();
            collections.remove(target);
        }
        collections.remove(source);
        source.rename(to.clone());
        collections.insert(source);
        Ok(lsn)
    }
}

pub(crate) fn source_not_found(from: &Namespace) -> Failure {
    Failure::new(ErrorCode::NAMESPACE_NOT_FOUND, format!("Source collection {from} does not exist"))
}

/// The oplog's command for a collection that gets a validator; `None` if the options have none.
fn validation_command(to: &Namespace, options: &DocumentBuf) -> Option<DocumentBuf> {
    options.as_ref().get("validator")?;
    let mut command = DocumentBuf::new().with("collMod", to.collection());
    for name in ["validator", "validationLevel", "validationAction"] {
        if let Some(value) = options.as_ref().get(name) {
            command.append(name, value);
        }
    }
    Some(command)
}
