//! The catalog of a secondary follows the log: each record that changes keyspace 0 changes the catalog in memory too.
//!
//! A record is absorbed in two steps, around the moment in which views begin to see it:
//!
//! ```text
//! before: index types and arrays, record ids, "indexes are changing" ──► views see the record ──► after: all the rest
//! ```
//! So readers find the same as on a primary, which shows a change after it has committed it. The first step only
//! widens: a plan must know an array or a type before a view has its keys, and a record id must be below the end that
//! scans ask for. A query whose index is being changed waits, or is planned again.
//!
//! The record's document is read by the code that reads it at a start (`persistence`). An existing collection stays and
//! only gets the difference, because operations hold the collection and its indexes, with samples, plans and counters.
//!
//! **Invariant:** records are absorbed in the order of the log, and none before the previous one is absorbed.
//! **Invariant:** nothing here writes.
//!
//! Locks: the application of records is locked first, then the catalog's `changes`.

use crate::catalog::Allocation;
use crate::collection::Parts;
use crate::persistence::{self, CATALOG, COUNTER};
use crate::subscribers::AbsorbHook;
use crate::{Catalog, Collection, Index, IndexState, Namespace, from_storage, search_index};
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_errors::Result;
use bunko_store::planted::{self, Bug};
use bunko_store::{Applying, Effect, Effects, KeyspaceId, Lsn, RecordId, Role, StorageError};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Changes of a record that views do not see yet.
#[derive(Default)]
struct Coming {
    /// Records of the catalog, with their last documents or `None` for a deletion.
    records: Vec<(RecordId, Option<DocumentBuf>)>,
    /// Record stores in which documents change, each with the largest record id that is put.
    touched: Vec<(KeyspaceId, u64)>,
}

/// A collection that a record changes, and its new form.
struct Remade {
    collection: Arc<Collection>,
    parts: Parts,
    indexes: Vec<Arc<Index>>,
    /// Whether the collection has other indexes afterwards, or other specifications.
    are_other_indexes: bool,
}

/// Changes of the directory of collections. Readers see all changes of a record at once: a rename that drops its target
/// would otherwise leave its new name without a collection for a moment.
#[derive(Default)]
struct Moves {
    created: Vec<Arc<Collection>>,
    dropped: Vec<Arc<Collection>>,
    renamed: Vec<(Arc<Collection>, Namespace)>,
}

impl Coming {
    fn add(&mut self, effects: Effects<'_>) {
        for effect in effects {
            let (keyspace, record, put) = match effect {
                Effect::PutRecord { keyspace, record, document, .. } => (keyspace, record, Some(document)),
                Effect::DeleteRecord { keyspace, record, .. } => (keyspace, record, None),
                _ => continue,
            };
            if keyspace == CATALOG {
                let document = put.map(|document| DocumentRef::trusted(document).to_owned());
                self.records.retain(|(known, _)| *known != record);
                self.records.push((record, document));
                continue;
            }
            let id = if put.is_some() { record.0 } else { 0 };
            match self.touched.iter_mut().rev().find(|(known, _)| *known == keyspace) {
                Some((_, largest)) => *largest = id.max(*largest),
                None => self.touched.push((keyspace, id)),
            }
        }
    }
}

impl Catalog {
    /// Applies the records of a secondary's log that end at or below the commit point, and absorbs them into the
    /// catalog. Returns the position up to which views see everything.
    /// # Errors
    /// `NotSecondary`; failures of the storage, after which a later call goes on; `InternalError` for a damaged record
    /// of the catalog, after which the catalog must be opened again.
    pub fn apply_committed(&self) -> Result<Lsn> {
        self.apply_up_to(self.store.committed_part_end())
    }

    /// As [`Catalog::apply_committed`], but stops before the first record that was written after `until_ms`, in milliseconds
    /// since 1970, and ends above `least`. Returns the time of that record, or `None` if all were applied.
    /// # Errors
    /// As [`Catalog::apply_committed`].
    pub fn apply_committed_until(&self, until_ms: u64, least: Lsn) -> Result<Option<u64>> {
        let mut applying = self.store.applying(self.store.committed_part_end()).map_err(from_storage)?;
        while applying.advance().map_err(from_storage)? {
            if let Some(next) = applying.moment().filter(|next| next.time_ms > until_ms && next.end > least) {
                return Ok(Some(next.time_ms));
            }
            self.apply_next(&mut applying)?;
        }
        Ok(None)
    }

    /// Makes the member the primary of a term: applies the rest of the log, above the commit point too, because this
    /// member keeps all of it; reads the write histories again if records were applied since it was primary last; then
    /// begins the term. The vote for the term must have been saved before. Returns the position of the term's record.
    /// # Errors
    /// As [`Catalog::apply_committed`]; failures of writing to the log. The member is not primary then.
    pub fn become_primary(&self, term: u64) -> Result<Lsn> {
        loop {
            if self.store.role() == Role::Secondary {
                self.apply_up_to(Lsn(u64::MAX))?;
                // New write histories must not get ids that the other primary has given.
                if self.has_absorbed.swap(false, Ordering::AcqRel) {
                    // Set again, so that the next attempt repeats a reading that failed.
                    let reloaded = self.reload_write_histories();
                    reloaded.inspect_err(|_| self.has_absorbed.store(true, Ordering::Release))?;
                }
            }
            match self.store.begin_term(term) {
                // Records have arrived in between: the loop applies them.
                Err(StorageError::Unapplied) => {}
                outcome => return outcome.map_err(from_storage),
            }
        }
    }

    /// Applies records of a secondary's log, above the commit point too, for about the time `slice`, but at least one. Returns
    /// whether all are applied: a member that becomes primary calls this until they are, and can do other work in between.
    /// # Errors
    /// As [`Catalog::apply_committed`].
    pub fn apply_rest(&self, slice: Duration) -> Result<bool> {
        if self.store.role() != Role::Secondary {
            return Ok(true);
        }
        let clock = self.store.clock();
        let until = clock.now() + slice;
        let mut applying = self.store.applying(Lsn(u64::MAX)).map_err(from_storage)?;
        while applying.advance().map_err(from_storage)? {
            self.apply_next(&mut applying)?;
            if clock.now() >= until {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn apply_up_to(&self, end: Lsn) -> Result<Lsn> {
        let mut applying = self.store.applying(end).map_err(from_storage)?;
        while applying.advance().map_err(from_storage)? {
            self.apply_next(&mut applying)?;
        }
        drop(applying);
        Ok(self.store.visible_end())
    }

    fn apply_next(&self, applying: &mut Applying<'_>) -> Result<()> {
        self.has_absorbed.store(true, Ordering::Release);
        let mut coming = Coming::default();
        let read = applying.each_part(&mut |effects| {
            coming.add(effects);
            Ok(())
        });
        read.map_err(from_storage)?;
        self.prepare_documents(&coming);
        if coming.records.is_empty() {
            applying.apply().map_err(from_storage)?;
            self.tell(&coming, BTreeSet::new());
            return Ok(());
        }
        let mut changes = self.changes.lock();
        let remade = self.prepare_structure(&coming)?;
        let changing = remade.iter().filter(|remade| remade.are_other_indexes);
        let changing: Vec<_> = changing.map(|remade| remade.collection.change_indexes()).collect();
        let lsn = applying.apply().map_err(from_storage)?;
        let names = self.absorb(&mut changes, &coming, &remade, lsn)?;
        drop(changing);
        drop(changes);
        self.tell(&coming, names);
        Ok(())
    }

    /// Calls `hook` whenever a secondary has applied changes of documents in this collection, or of the collection
    /// itself. The thread that applies records waits for the hook.
    pub fn on_absorbed(&self, namespace: Namespace, hook: AbsorbHook) {
        self.subscribers.add(namespace, hook);
    }

    /// Before views see new documents, scans must know that there are further record ids.
    fn prepare_documents(&self, coming: &Coming) {
        let collections = self.collections.read();
        for (keyspace, largest) in coming.touched.iter().filter(|(_, largest)| *largest > 0) {
            if let Some(collection) = collections.with_records(*keyspace)
                && !planted::active(Bug::RecordIdNotAbsorbed)
            {
                collection.absorb_record_id(RecordId(*largest));
            }
        }
    }

    /// Reads the new form of the collections that exist already, and widens the arrays and types of their indexes.
    fn prepare_structure(&self, coming: &Coming) -> Result<Vec<Remade>> {
        let mut all = Vec::new();
        for (record, document) in &coming.records {
            let Some(document) = document.as_ref().filter(|_| *record != COUNTER) else { continue };
            let Some(collection) = self.collections.read().with_catalog_record(*record).cloned() else { continue };
            let parts = persistence::read_parts(*record, document.as_ref())?;
            if collection.uuid == parts.uuid && collection.records == parts.records {
                all.push(remade(collection, parts));
            }
        }
        Ok(all)
    }

    /// Makes the record's changes of the catalog visible, once views see the record. Returns the names of the
    /// collections concerned.
    fn absorb(
        &self,
        changes: &mut Allocation,
        coming: &Coming,
        remade: &[Remade],
        lsn: Lsn,
    ) -> Result<BTreeSet<Namespace>> {
        let (mut moves, mut names) = (Moves::default(), BTreeSet::new());
        for (record, document) in &coming.records {
            let present = self.collections.read().with_catalog_record(*record).cloned();
            match document {
                Some(document) if *record == COUNTER => {
                    changes.absorb_counter(persistence::read_counter(document.as_ref())?);
                }
                Some(document) => {
                    changes.absorb_record(*record);
                    match remade.iter().find(|remade| remade.collection.catalog_record == *record) {
                        Some(remade) => Self::absorb_change(remade, lsn, &mut moves, &mut names),
                        None => {
                            let created = persistence::read_collection(&self.store, *record, document.as_ref())?;
                            if !created.strings().is_bytes() || created.namespace().holds_views() {
                                self.note_collation();
                            }
                            created.occupancy.note_change(lsn);
                            moves.created.push(Arc::new(created));
                            moves.dropped.extend(present);
                        }
                    }
                }
                None => moves.dropped.extend(present),
            }
        }
        self.show_moves(&moves, lsn, &mut names);
        Ok(names)
    }

    fn show_moves(&self, moves: &Moves, lsn: Lsn, names: &mut BTreeSet<Namespace>) {
        names.extend(moves.created.iter().map(|created| created.namespace().as_ref().clone()));
        let renamed = moves.renamed.iter().map(|(collection, _)| collection);
        for left in moves.dropped.iter().chain(renamed).map(|collection| collection.namespace()) {
            self.past_states.note_removed(&self.store, &left, lsn);
            names.insert(left.as_ref().clone());
        }
        // All changes happen under one lock, so that a lookup by name finds neither a dropped collection nor a gap.
        let mut collections = self.collections.write();
        for collection in &moves.dropped {
            collection.set_dropped();
            collections.remove(collection);
        }
        moves.renamed.iter().for_each(|(collection, _)| collections.remove(collection));
        for (collection, to) in &moves.renamed {
            collection.rename(to.clone());
            collections.insert(collection);
            names.insert(to.clone());
        }
        moves.created.iter().for_each(|collection| collections.insert(collection));
    }

    fn absorb_change(remade: &Remade, lsn: Lsn, moves: &mut Moves, names: &mut BTreeSet<Namespace>) {
        let Remade { collection, parts, indexes, are_other_indexes } = remade;
        let mut is_other = *are_other_indexes;
        for (index, read) in indexes.iter().zip(&parts.indexes) {
            if read.state() == IndexState::Ready && index.state() == IndexState::Building {
                index.set_state(IndexState::Ready);
                is_other = true;
            }
        }
        if is_other {
            collection.set_indexes(indexes.clone());
        }
        if *collection.options() != parts.options {
            collection.set_options(parts.options.clone());
            is_other = true;
        }
        if search_index::encode(&collection.search_indexes()) != search_index::encode(&parts.search_indexes) {
            collection.set_search_indexes(parts.search_indexes.clone());
        }
        names.insert(collection.namespace().as_ref().clone());
        if *collection.namespace() != parts.namespace {
            moves.renamed.push((Arc::clone(collection), parts.namespace.clone()));
            is_other = true;
        }
        if is_other {
            collection.occupancy.note_change(lsn);
        }
    }

    /// Wakes followers of capped collections, and calls the hooks of the collections that changed.
    fn tell(&self, coming: &Coming, mut names: BTreeSet<Namespace>) {
        for (keyspace, _) in &coming.touched {
            let Some(collection) = self.collections.read().with_records(*keyspace).cloned() else { continue };
            if collection.is_capped() {
                collection.bell().ring();
            }
            if self.subscribers.are_any() {
                names.insert(collection.namespace().as_ref().clone());
            }
        }
        self.subscribers.tell(&names);
    }
}

/// Compares a collection with its new record, and widens the arrays and types of its indexes.
fn remade(collection: Arc<Collection>, parts: Parts) -> Remade {
    let before = collection.indexes();
    let mut are_other_indexes = before.len() != parts.indexes.len();
    let mut indexes = Vec::with_capacity(parts.indexes.len());
    for (position, read) in parts.indexes.iter().enumerate() {
        let known = before.iter().find(|index| index.keyspace == read.keyspace);
        let Some(known) = known else {
            are_other_indexes = true;
            read.note_counted_since(collection.store().clock().now_ms() as i64);
            indexes.push(Arc::clone(read));
            continue;
        };
        if !known.multikey().covers(&read.multikey()) && !planted::active(Bug::MultikeyNotAbsorbed) {
            known.add_multikey(&read.multikey());
        }
        let is_same_spec = known.document == read.document && known.was_converted == read.was_converted;
        are_other_indexes |= !is_same_spec || !Arc::ptr_eq(known, &before[position.min(before.len() - 1)]);
        indexes.push(if is_same_spec {
            Arc::clone(known)
        } else {
            let changed = known.respecified(read.spec().clone());
            changed.set_state(known.state());
            Arc::new(changed)
        });
    }
    Remade { collection, parts, indexes, are_other_indexes }
}
