//! `$out`: a new collection is filled beside the old one and takes its name in one step, so a server that is killed
//! before has the old one.

use crate::invocation::Invocation;
use bunko_aggregate::DocumentStream;
use bunko_bson::ValueRef;
use bunko_catalog::stored_document::{self, EmptyTimestamps};
use bunko_catalog::{CreateOptions, IndexSpec, Namespace, Order, RenameTarget};
use bunko_errors::{ErrorCode, Failure, Result};
use std::borrow::Cow;

/// Documents, and their bytes, that are inserted at once.
const BATCH_COUNT_MAX: usize = 1000;
const BATCH_BYTES_MAX: usize = 4 << 20;

/// Whether the collection may be replaced.
pub(super) fn check(invocation: &Invocation<'_>, target: &Namespace) -> Result<()> {
    let Some(existing) = invocation.collection_not_view(target)? else { return Ok(()) };
    if matches!((*existing.options()).as_ref().get("capped"), Some(ValueRef::Boolean(true))) {
        let message = format!("namespace '{target}' is capped so it can't be used for $out");
        return Err(Failure::new(ErrorCode(17152), message));
    }
    Ok(())
}

pub(super) fn run(
    invocation: &mut Invocation<'_>,
    target: &Namespace,
    documents: &mut dyn DocumentStream,
) -> Result<()> {
    let random = (invocation.service.world.random)();
    let temporary = Namespace::new(target.database(), &format!("tmp.agg_out.{random:016x}"))?;
    let outcome = fill(invocation, &temporary, target, documents).and_then(|()| {
        check(invocation, target)?;
        invocation.service.catalog.rename(&temporary, target, RenameTarget::Drop, invocation)
    });
    match outcome {
        Ok(lsn) => {
            invocation.note_written(Some(lsn));
            Ok(())
        }
        Err(failure) => {
            // The operation may have been stopped, which must not stop this.
            let own = invocation.service.own_operation();
            invocation.service.catalog.drop_collection(&temporary, &*own)?;
            Err(failure)
        }
    }
}

/// Makes a collection with the options and indexes of the target, and inserts.
fn fill(
    invocation: &mut Invocation<'_>,
    temporary: &Namespace,
    target: &Namespace,
    documents: &mut dyn DocumentStream,
) -> Result<()> {
    let service = invocation.service;
    let mut create = CreateOptions::default();
    let mut indexes = Vec::new();
    if let Some(existing) = invocation.collection(target) {
        create.options = (*existing.options()).clone();
        create.engine = Some(existing.engine.clone());
        for index in existing.ready_indexes().iter().filter(|index| !index.is_id()) {
            indexes.push(IndexSpec::parse(index.document.as_ref())?);
        }
    }
    let (collection, lsn) = service.catalog.create(temporary, create, invocation)?;
    invocation.note_written(Some(lsn));
    if !indexes.is_empty() {
        service.catalog.create_indexes(&collection, &indexes, invocation)?;
    }
    loop {
        let mut batch: Vec<Cow<'static, [u8]>> = Vec::new();
        let mut batch_bytes = 0;
        while batch.len() < BATCH_COUNT_MAX && batch_bytes < BATCH_BYTES_MAX {
            let Some(document) = documents.next()? else { break };
            let stored = stored_document::for_insert(document.as_ref(), EmptyTimestamps::Filled, &service.world)?;
            batch_bytes += stored.len();
            batch.push(Cow::Owned(stored.into_owned()));
        }
        if batch.is_empty() {
            return Ok(());
        }
        let mut inserted = service.catalog.insert(temporary, &batch, Order::Ordered, invocation)?;
        invocation.note_written(inserted.lsn);
        if let Some(failure) = inserted.failures.pop().map(|(_, failure)| failure).or(inserted.stopped_by) {
            return Err(failure);
        }
    }
}
