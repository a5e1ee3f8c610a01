//! Acknowledged writes, and writes that may have happened although no reply arrived.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The number of a document; `None` if it does not exist.
pub type State = Option<i64>;
/// Documents' numbers by `_id`.
pub type Contents = BTreeMap<i32, i64>;

/// A document that one writer owns: its acknowledged state, and the state that was requested since.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    acknowledged: State,
    asked: Option<State>,
}

/// The model of all collections whose documents have one writer each, shared by the writers.
#[derive(Clone, Default)]
pub struct Model(Arc<Shared>);

#[derive(Default)]
struct Shared {
    entries: Mutex<BTreeMap<(String, i32), Entry>>,
    last_number: AtomicI64,
    acknowledged: AtomicU64,
}

impl Model {
    /// A number that no write has had.
    pub fn next_number(&self) -> i64 {
        self.0.last_number.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Writes that were acknowledged.
    pub fn writes(&self) -> u64 {
        self.0.acknowledged.load(Ordering::Relaxed)
    }

    /// The last acknowledged state.
    pub fn state(&self, collection: &str, id: i32) -> State {
        let entries = self.0.entries.lock().expect("not poisoned");
        entries.get(&(collection.to_owned(), id)).and_then(|entry| entry.acknowledged)
    }

    /// Records the states that a write is about to request: from now on they may exist.
    pub fn ask(&self, collection: &str, ids: &[i32], state: impl Fn(i32) -> State) {
        let mut entries = self.0.entries.lock().expect("not poisoned");
        for id in ids {
            entries.entry((collection.to_owned(), *id)).or_default().asked = Some(state(*id));
        }
    }

    /// Records that the write was acknowledged.
    pub fn acknowledge(&self, collection: &str, ids: &[i32]) {
        self.0.acknowledged.fetch_add(1, Ordering::Relaxed);
        self.conclude(collection, ids, |entry| entry.acknowledged = entry.asked.expect("it was asked for"));
    }

    /// Records that the server refused the write.
    pub fn refuse(&self, collection: &str, ids: &[i32]) {
        self.conclude(collection, ids, |_| {});
    }

    fn conclude(&self, collection: &str, ids: &[i32], change: impl Fn(&mut Entry)) {
        let mut entries = self.0.entries.lock().expect("not poisoned");
        for id in ids {
            let entry = entries.get_mut(&(collection.to_owned(), *id)).expect("it was asked for");
            change(entry);
            entry.asked = None;
        }
    }

    /// Compares a collection's contents with the acknowledged and requested states, and takes them as acknowledged from
    /// now on.
    /// # Errors
    /// The documents that are lost, or exist without having been requested.
    pub fn settle(&self, collection: &str, found: &Contents) -> Result<(), String> {
        let mut entries = self.0.entries.lock().expect("not poisoned");
        let mut wrong = Vec::new();
        for id in found.keys() {
            if !entries.contains_key(&(collection.to_owned(), *id)) {
                wrong.push(format!("{id} was never asked for"));
            }
        }
        for ((_, id), entry) in entries.iter_mut().filter(|((name, _), _)| name == collection) {
            let state = found.get(id).copied();
            if state != entry.acknowledged && entry.asked != Some(state) {
                wrong.push(format!("{id} is {state:?}, known was {entry:?}"));
            }
            *entry = Entry { acknowledged: state, asked: None };
        }
        match wrong.len() {
            0 => Ok(()),
            count => {
                Err(format!("{collection}: {count} documents are not as acknowledged: {:?}", &wrong[..count.min(5)]))
            }
        }
    }

    /// Forgets a collection in memory, which loses all data with its process.
    pub fn forget(&self, collection: &str) {
        let mut entries = self.0.entries.lock().expect("not poisoned");
        entries.iter_mut().filter(|((name, _), _)| name == collection).for_each(|(_, entry)| *entry = Entry::default());
    }
}

/// State of the collection that moves: one thread creates, fills, renames and drops it as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Its name; `None` while it does not exist.
    pub name: Option<&'static str>,
    /// Every acknowledged document.
    pub contents: Contents,
}

/// The last known state of the collection that moves, and the state that it may have because no reply arrived.
#[derive(Clone, Debug, Default)]
pub struct Moving {
    pub known: Place,
    pub asked: Option<Place>,
}

impl Moving {
    /// # Errors
    /// If it has neither its known nor its requested state.
    pub fn settle(&mut self, found: Place) -> Result<(), String> {
        if found != self.known && self.asked.as_ref() != Some(&found) {
            return Err(format!("the collection that moves is {found:?}, known was {self:?}"));
        }
        *self = Self { known: found, asked: None };
        Ok(())
    }
}
