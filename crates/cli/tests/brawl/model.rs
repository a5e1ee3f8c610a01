//! What was acknowledged, and what may have happened besides because nobody heard the answer.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The number of a document, if it is there.
pub type State = Option<i64>;
/// Documents by their `_id`, with their numbers.
pub type Contents = BTreeMap<i32, i64>;

/// A document that one writer owns: the state that was acknowledged, and the one that was asked for since.
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

    /// The last state that is known.
    pub fn state(&self, collection: &str, id: i32) -> State {
        let entries = self.0.entries.lock().expect("not poisoned");
        entries.get(&(collection.to_owned(), id)).and_then(|entry| entry.acknowledged)
    }

    /// A write is about to ask for it: it may be there from now on.
    pub fn ask(&self, collection: &str, ids: &[i32], state: impl Fn(i32) -> State) {
        let mut entries = self.0.entries.lock().expect("not poisoned");
        for id in ids {
            entries.entry((collection.to_owned(), *id)).or_default().asked = Some(state(*id));
        }
    }

    /// The write was acknowledged.
    pub fn acknowledge(&self, collection: &str, ids: &[i32]) {
        self.0.acknowledged.fetch_add(1, Ordering::Relaxed);
        self.conclude(collection, ids, |entry| entry.acknowledged = entry.asked.expect("it was asked for"));
    }

    /// The server said that the write did not happen.
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

    /// What a collection holds must be explained by what was acknowledged and asked for; from now on it is what holds.
    /// # Errors
    /// The documents that are lost, or there without having been asked for.
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

    /// A collection in memory has lost everything with its process.
    pub fn forget(&self, collection: &str) {
        let mut entries = self.0.entries.lock().expect("not poisoned");
        entries.iter_mut().filter(|((name, _), _)| name == collection).for_each(|(_, entry)| *entry = Entry::default());
    }
}

/// The collection that moves: it is created, filled, renamed and dropped as a whole, by one thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// What it is called; `None` while it does not exist.
    pub name: Option<&'static str>,
    /// Every document that was acknowledged.
    pub contents: Contents,
}

/// Where the collection that moves was last, and where it may be because nobody heard the answer.
#[derive(Clone, Debug, Default)]
pub struct Moving {
    pub known: Place,
    pub asked: Option<Place>,
}

impl Moving {
    /// # Errors
    /// It is neither where it was known to be nor where it was asked to be.
    pub fn settle(&mut self, found: Place) -> Result<(), String> {
        if found != self.known && self.asked.as_ref() != Some(&found) {
            return Err(format!("the collection that moves is {found:?}, known was {self:?}"));
        }
        *self = Self { known: found, asked: None };
        Ok(())
    }
}
