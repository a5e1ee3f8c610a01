//! A store and its model, which carry out operations together.

use crate::properties::operations::{Acknowledgement, Change, Operation, Part};
use bunko_conformance::comparison::{self, Difference, Outcome, next_key, next_record, record_bound};
use bunko_conformance::document::{Document, key};
use bunko_conformance::model::{Collection, Model, Stored, value_key};
use bunko_conformance::roster;
use bunko_conformance::subject::Subject;
use bunko_engines::Entry;
use bunko_store::{
    Batch, KeyCursor, KeyRange, KeyspaceId, Lsn, Presence, RecordCursor, RecordId, RecordRange, Snapshot, Survival,
    View,
};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// Maximum number of snapshots, and of cursors, that are open at a time.
const OPEN_MAX: usize = 6;
/// The catalog's records, in the store's own engine.
const CATALOG: KeyspaceId = KeyspaceId(0);
/// Five documents of this length fill a segment.
const LARGE_BYTES: u32 = 13 << 20;

pub struct Machine {
    // Declared first: open cursors must not outlive their store.
    cursors: Vec<Open>,
    snapshots: Vec<Held>,
    model: Model,
    /// The state that a crash must preserve at least.
    written: Model,
    /// Later states, each with the LSN of its record.
    unwritten: Vec<(Lsn, Model)>,
    subject: Subject,
}

#[derive(Clone)]
struct Held {
    snapshot: Arc<Snapshot>,
    model: Model,
}

/// A walk, with the rest of its expected results.
struct Open {
    walk: Walk,
    _snapshot: Arc<Snapshot>,
}

enum Walk {
    Records(Box<dyn RecordCursor>, VecDeque<(u64, Stored)>),
    Keys(Box<dyn KeyCursor>, VecDeque<(Vec<u8>, u64)>),
}

impl Machine {
    pub fn new(own: &'static Entry) -> Self {
        let (model, written) = (Model::default(), Model::default());
        let subject = Subject::new(own);
        Self { cursors: Vec::new(), snapshots: Vec::new(), model, written, unwritten: Vec::new(), subject }
    }

    /// Carries out one operation, and compares the results and the counts.
    pub fn step(&mut self, operation: &Operation) -> Outcome {
        match operation {
            Operation::Create { engine } => self.create(*engine)?,
            Operation::Drop { collection } => self.drop_collection(*collection)?,
            Operation::Write { changes, acknowledgement } => self.change(changes, *acknowledgement)?,
            Operation::Fill { collection, seed } => self.fill(*collection, *seed)?,
            Operation::Checkpoint => self.subject.store().checkpoint()?,
            Operation::Compact => self.subject.store().compact()?,
            Operation::Snapshot => {
                if self.snapshots.len() < OPEN_MAX {
                    let snapshot = Arc::new(self.subject.store().snapshot());
                    self.snapshots.push(Held { snapshot, model: self.model.clone() });
                }
            }
            Operation::Release { snapshot } => {
                if let Some(number) = snapshot.checked_rem(self.snapshots.len()) {
                    self.snapshots.swap_remove(number);
                }
            }
            Operation::Look { snapshot, collection, at } => self.look(*snapshot, *collection, at)?,
            Operation::OpenCursor { snapshot, collection, at } => self.open_cursor(*snapshot, *collection, at),
            Operation::Advance { cursor, steps } => self.advance(*cursor, *steps)?,
            Operation::Reopen => self.restart(Subject::reopen)?,
            Operation::Crash => self.restart(Subject::crash)?,
        }
        self.subject.content();
        comparison::statistics(self.subject.store(), &self.model)
    }

    /// Compares everything that is open, and the contents after closing and opening.
    pub fn finish(&mut self) -> Outcome {
        for held in &self.snapshots {
            comparison::all(&*held.snapshot, &held.model)?;
        }
        for cursor in 0..self.cursors.len() {
            self.advance(cursor, usize::MAX)?;
        }
        comparison::all(self.subject.store().latest(), &self.model)?;
        self.restart(Subject::reopen)
    }

    fn commit(&mut self, batch: &Batch<'_>, acknowledgement: Acknowledgement) -> Outcome {
        let store = self.subject.store();
        let lsn = store.commit(batch)?;
        self.unwritten.push((lsn, self.model.clone()));
        if acknowledgement == Acknowledgement::Written {
            store.write(lsn)?;
            self.everything_is_written();
        }
        Ok(())
    }

    fn everything_is_written(&mut self) {
        self.unwritten.clear();
        self.written = self.model.clone();
    }

    fn create(&mut self, engine: usize) -> Outcome {
        let names = self.subject.store().engine_names();
        let engine = names[engine % names.len()];
        let survival = roster::survival(bunko_engines::find(engine).expect("an engine of the table"));
        let number = self.model.create(engine, survival);
        let mut batch = Batch::new();
        batch.insert_record(CATALOG, RecordId(u64::from(number)), Document { seed: number, length: 200 }.bytes());
        for keyspace in keyspaces(&self.model.collections[&number]) {
            batch.create_keyspace(keyspace, engine, &[]);
        }
        self.commit(&batch, Acknowledgement::Written)
    }

    fn drop_collection(&mut self, collection: usize) -> Outcome {
        let Some(number) = self.model.pick(collection) else { return Ok(()) };
        let mut batch = Batch::new();
        let record = RecordId(u64::from(number));
        let location = self.subject.store().latest().record(CATALOG, record, &mut Vec::new())?;
        let location = location.ok_or_else(|| Difference::Wrong(format!("catalog record {number} is gone")))?;
        batch.delete_record(CATALOG, record, location);
        if let Some(collection) = self.model.collections.remove(&number) {
            for keyspace in keyspaces(&collection) {
                batch.drop_keyspace(keyspace);
            }
        }
        self.commit(&batch, Acknowledgement::Written)
    }

    fn change(&mut self, changes: &[Change], acknowledgement: Acknowledgement) -> Outcome {
        let mut batch = Batch::new();
        // Each record and key is touched at most once in a batch, as in the catalog's batches.
        let mut touched = BTreeSet::new();
        let mut model = self.model.clone();
        for change in changes {
            let Some(number) = model.pick(change.collection()) else { return Ok(()) };
            let collection = model.collection_mut(number);
            match *change {
                Change::Insert { id, value, document, .. } => {
                    let is_taken = collection.by_id.contains_key(&key(id));
                    if is_taken || !touched.insert((number, Touched::Id(id))) {
                        continue;
                    }
                    let record = collection.insert(Stored { document, id, value });
                    touched.insert((number, Touched::Record(record)));
                    batch.insert_record(collection.records, RecordId(record), document.bytes());
                    batch.put_primary_key(collection.ids, &key(id), RecordId(record), Presence::New);
                    batch.put_key(collection.values, &value_key(value, record), RecordId(record));
                }
                Change::Replace { record, value, document, .. } => {
                    let Some((record, old)) = collection.pick(record) else { continue };
                    if touched.insert((number, Touched::Record(record))) {
                        let stored = Stored { document, id: old.id, value };
                        replace(self.subject.store().latest(), &mut batch, collection, record, stored)?;
                        touched.insert((number, Touched::Id(old.id)));
                    }
                }
                Change::Delete { record, .. } => {
                    let Some((record, old)) = collection.pick(record) else { continue };
                    if touched.insert((number, Touched::Record(record))) {
                        delete(self.subject.store().latest(), &mut batch, collection, record)?;
                        touched.insert((number, Touched::Id(old.id)));
                    }
                }
            }
        }
        self.model = model;
        if batch.is_empty() { Ok(()) } else { self.commit(&batch, acknowledgement) }
    }

    fn fill(&mut self, collection: usize, seed: u32) -> Outcome {
        let Some(number) = self.model.pick(collection) else { return Ok(()) };
        let collection = self.model.collection_mut(number);
        let free: Vec<u8> = (0..u8::MAX).filter(|id| !collection.by_id.contains_key(&key(*id))).take(5).collect();
        let mut records = Vec::new();
        for id in free {
            let collection = self.model.collection_mut(number);
            if collection.by_id.contains_key(&key(id)) {
                continue;
            }
            let stored = Stored { document: Document { seed, length: LARGE_BYTES }, id, value: id };
            let record = RecordId(collection.insert(stored));
            records.push(record.0);
            let mut batch = Batch::new();
            batch.insert_record(collection.records, record, stored.document.bytes());
            batch.put_primary_key(collection.ids, &key(id), record, Presence::New);
            batch.put_key(collection.values, &value_key(id, record.0), record);
            self.commit(&batch, Acknowledgement::Written)?;
        }
        for record in records.into_iter().skip(1) {
            let mut batch = Batch::new();
            delete(self.subject.store().latest(), &mut batch, self.model.collection_mut(number), record)?;
            self.commit(&batch, Acknowledgement::Written)?;
        }
        Ok(())
    }

    fn held(&self, snapshot: usize) -> Option<Held> {
        Some(self.snapshots[snapshot.checked_rem(self.snapshots.len())?].clone())
    }

    fn look(&mut self, snapshot: usize, collection: usize, at: &Part) -> Outcome {
        let held = self.held(snapshot);
        let (view, model): (&dyn View, _) = match &held {
            Some(held) => (&*held.snapshot, &held.model),
            None => (self.subject.store().latest(), &self.model),
        };
        let Some(number) = model.pick(collection) else { return Ok(()) };
        let collection = &model.collections[&number];
        match at {
            Part::Whole => comparison::whole(view, collection),
            Part::Points => comparison::points(view, collection),
            Part::Records(start, end, direction) => {
                let range = RecordRange { start: record_bound(*start), end: record_bound(*end) };
                comparison::records(view, collection, range, *direction)
            }
            Part::Keys(index, start, end, direction) => {
                let range = KeyRange { start: start.map(key), end: end.map(key) };
                comparison::keys(view, collection, *index, &range, *direction)
            }
        }
    }

    fn open_cursor(&mut self, snapshot: usize, collection: usize, at: &Part) {
        let Some(held) = self.held(snapshot) else { return };
        let Some(number) = held.model.pick(collection) else { return };
        let collection = &held.model.collections[&number];
        let walk = match at {
            Part::Records(start, end, direction) => {
                let range = RecordRange { start: record_bound(*start), end: record_bound(*end) };
                let cursor = held.snapshot.records(collection.records, range, *direction);
                Walk::Records(cursor, collection.records_in(range, *direction).into())
            }
            Part::Keys(index, start, end, direction) => {
                let range = KeyRange { start: start.map(key), end: end.map(key) };
                let expected = collection.keys_in(*index, &range, *direction);
                Walk::Keys(held.snapshot.keys(collection.index(*index).0, range, *direction), expected.into())
            }
            Part::Whole | Part::Points => return,
        };
        if self.cursors.len() < OPEN_MAX {
            self.cursors.push(Open { walk, _snapshot: held.snapshot });
        }
    }

    /// Advances a walk up to its end.
    fn advance(&mut self, cursor: usize, steps: usize) -> Outcome {
        let Some(number) = cursor.checked_rem(self.cursors.len()) else { return Ok(()) };
        for _ in 0..steps {
            let is_at_end = match &mut self.cursors[number].walk {
                Walk::Records(cursor, expected) => {
                    let expected = expected.pop_front();
                    next_record(&mut **cursor, expected)?;
                    expected.is_none()
                }
                Walk::Keys(cursor, expected) => {
                    let expected = expected.pop_front();
                    next_key(&mut **cursor, expected.as_ref().map(|(key, record)| (key.as_slice(), *record)))?;
                    expected.is_none()
                }
            };
            if is_at_end {
                // The cursor stays in its place, so that the others keep their numbers while `finish` walks all of
                // them.
                break;
            }
        }
        Ok(())
    }

    fn restart(&mut self, restart: fn(&mut Subject)) -> Outcome {
        self.cursors.clear();
        self.snapshots.clear();
        restart(&mut self.subject);
        let end = self.subject.store().statistics().log.next_lsn;
        let is_lost = |(lsn, _): &(Lsn, Model)| lsn.0 >= end;
        let kept = self.unwritten.iter().take_while(|state| !is_lost(state)).last();
        self.model = match roster::survival(self.subject.own()) {
            Survival::Durable => kept.map_or(&self.written, |(_, model)| model).clone(),
            Survival::Volatile => Model::default(),
        };
        self.model.restart();
        self.everything_is_written();
        comparison::all(&self.subject.store().snapshot(), &self.model)?;
        comparison::statistics(self.subject.store(), &self.model)
    }
}

/// Records and keys that a batch may touch only once.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Touched {
    Record(u64),
    Id(u8),
}

impl Change {
    fn collection(&self) -> usize {
        match self {
            Self::Insert { collection, .. } | Self::Replace { collection, .. } | Self::Delete { collection, .. } => {
                *collection
            }
        }
    }
}

fn keyspaces(collection: &Collection) -> [KeyspaceId; 3] {
    [collection.records, collection.ids, collection.values]
}

/// Replaces a document as the catalog does: removed keys, the document and its primary key, then added keys.
fn replace(
    latest: &dyn View,
    batch: &mut Batch<'_>,
    collection: &mut Collection,
    record: u64,
    stored: Stored,
) -> Outcome {
    let id = RecordId(record);
    let found = latest.record_by_primary_key(collection.ids, collection.records, &key(stored.id), &mut Vec::new())?;
    let Some((_, location)) = found else {
        return Err(Difference::Wrong(format!("record {record} is not found to be replaced")));
    };
    let value = collection.documents[&record].value;
    if value != stored.value {
        batch.delete_key(collection.values, &value_key(value, record));
    }
    batch.replace_record(collection.records, id, stored.document.bytes(), location);
    batch.put_primary_key(collection.ids, &key(stored.id), id, Presence::Moved);
    if value != stored.value {
        batch.put_key(collection.values, &value_key(stored.value, record), id);
    }
    collection.replace(record, stored);
    Ok(())
}

/// Deletes a document as the catalog does: its keys, then the document.
fn delete(latest: &dyn View, batch: &mut Batch<'_>, collection: &mut Collection, record: u64) -> Outcome {
    let stored = collection.documents[&record];
    let Some(location) = latest.record(collection.records, RecordId(record), &mut Vec::new())? else {
        return Err(Difference::Wrong(format!("record {record} is not found to be deleted")));
    };
    batch.delete_key(collection.ids, &key(stored.id));
    batch.delete_key(collection.values, &value_key(stored.value, record));
    batch.delete_record(collection.records, RecordId(record), location);
    collection.delete(record);
    Ok(())
}
