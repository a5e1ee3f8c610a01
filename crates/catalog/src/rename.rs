//! Giving a collection another name.

use crate::transaction::{announce, exclude_all};
use crate::user_writes;
use crate::waiting::lock;
use crate::{Catalog, Collection, Namespace, from_storage, notes, persistence};
use bunko_bson::{BinarySubtype, DocumentBuf, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationSource;
use bunko_store::{Batch, Lsn};
use std::sync::Arc;

/// What becomes of a collection that has the new name already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenameTarget {
    /// It stays, and the rename is refused.
    Keep,
    /// It is dropped.
    Drop,
    /// It is dropped where its options and indexes are those of what takes its place, which was made like it: else what
    /// changed it meanwhile would be undone without a word.
    DropIfAlike,
}

/// Errors: `CommandFailed` where options or indexes of the target differ from those of the source.
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
    /// Gives a collection another name, dropping what has that name where `replace` says so.
    /// # Errors
    /// `NamespaceNotFound`; `NamespaceExists` where the target exists and stays; `IllegalOperation` where both are one;
    /// `CommandFailed` where they had to be alike and are not.
    pub fn rename(
        &self,
        from: &Namespace,
        to: &Namespace,
        replace: RenameTarget,
        operation: &dyn OperationSource,
    ) -> Result<Lsn> {
        // One collection's structure cannot be locked twice.
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

    /// What has the name that a collection is to get, and goes for it.
    /// # Errors
    /// `NamespaceExists` where it is a view, or stays.
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

    /// Gives `source` the name `to`, and the options where some are given, in the place of `target`. The caller changes
    /// the catalog, and keeps writers out of both.
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

/// What the oplog is told where a collection has a validator from now on.
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
