//! What was asked for and what was acknowledged, document by document.

use super::check::Found;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A document's place in the list of collections, and its `_id`. Each has one writer, which waits for its replies.
pub type Key = (usize, i32);

/// The number of a document, if it is to be there.
pub type State = Option<i64>;

/// The states of one document, in the order in which they were asked for.
#[derive(Clone, Debug)]
pub struct History {
    states: Vec<State>,
    /// The last that was acknowledged.
    acknowledged: usize,
}

impl History {
    fn of(state: State) -> Self {
        Self { states: vec![state], acknowledged: 0 }
    }
}

/// What is known of all documents at one time.
pub type Documents = BTreeMap<Key, History>;

/// What is known, shared by the writers.
#[derive(Clone, Default)]
pub struct Ledger(Arc<Shared>);

#[derive(Default)]
struct Shared {
    documents: Mutex<Documents>,
    last_number: AtomicI64,
    writes: AtomicU64,
}

impl Ledger {
    /// A number that no document has had.
    pub fn next_number(&self) -> i64 {
        self.0.last_number.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Notes what a write is about to ask for; from now on it may be there.
    pub fn ask(&self, changes: &[(Key, State)]) {
        let mut documents = self.0.documents.lock().expect("not poisoned");
        for (key, state) in changes {
            documents.entry(*key).or_insert_with(|| History::of(None)).states.push(*state);
        }
    }

    /// What was asked for last is promised: from now on it must be there.
    pub fn acknowledge(&self, changes: &[(Key, State)]) {
        let mut documents = self.0.documents.lock().expect("not poisoned");
        for (key, _) in changes {
            let history = documents.get_mut(key).expect("it was asked for");
            history.acknowledged = history.states.len() - 1;
        }
        self.0.writes.fetch_add(1, Ordering::Relaxed);
    }

    /// What was asked for last.
    pub fn last(&self, key: Key) -> State {
        let documents = self.0.documents.lock().expect("not poisoned");
        documents.get(&key).and_then(|history| history.states.last().copied().flatten())
    }

    /// Writes that were acknowledged.
    pub fn writes(&self) -> u64 {
        self.0.writes.load(Ordering::Relaxed)
    }

    pub fn snapshot(&self) -> Documents {
        self.0.documents.lock().expect("not poisoned").clone()
    }

    /// What a crash has left is what must stay: a write that was lost may not come back.
    pub fn settle(&self, found: &Found) {
        for (key, history) in &mut *self.0.documents.lock().expect("not poisoned") {
            *history = History::of(found.get(key).copied());
        }
    }
}

/// What was found, as all that may be there.
pub fn exactly(found: &Found) -> Documents {
    found.iter().map(|(key, number)| (*key, History::of(Some(*number)))).collect()
}

/// Whether a document may be in that state, by what had been acknowledged and what has been asked for since.
pub fn is_explained(found: State, promised: Option<&History>, asked: Option<&History>) -> bool {
    let first = promised.map_or(0, |history| history.acknowledged);
    asked.map_or(found.is_none(), |history| history.states[first..].contains(&found))
}
