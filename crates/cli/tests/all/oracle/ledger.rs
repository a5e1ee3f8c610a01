//! Requested and acknowledged states of every document.

use super::check::Found;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The index of a document's collection, and its `_id`. Each document has one writer, which waits for its replies.
pub type Key = (usize, i32);

/// The number of a document; `None` if it does not exist.
pub type State = Option<i64>;

/// The states of one document, in the order in which they were requested.
#[derive(Clone, Debug)]
pub struct History {
    states: Vec<State>,
    /// Index of the last acknowledged state.
    acknowledged: usize,
}

impl History {
    fn of(state: State) -> Self {
        Self { states: vec![state], acknowledged: 0 }
    }
}

/// Histories of all documents at one time.
pub type Documents = BTreeMap<Key, History>;

/// Histories of all documents, shared by the writers.
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

    /// Records the states that a write is about to request: from now on they may exist.
    pub fn ask(&self, changes: &[(Key, State)]) {
        let mut documents = self.0.documents.lock().expect("not poisoned");
        for (key, state) in changes {
            documents.entry(*key).or_insert_with(|| History::of(None)).states.push(*state);
        }
    }

    /// Records that the last requested states were acknowledged: from now on they must exist.
    pub fn acknowledge(&self, changes: &[(Key, State)]) {
        let mut documents = self.0.documents.lock().expect("not poisoned");
        for (key, _) in changes {
            let history = documents.get_mut(key).expect("it was asked for");
            history.acknowledged = history.states.len() - 1;
        }
        self.0.writes.fetch_add(1, Ordering::Relaxed);
    }

    /// The last requested state.
    pub fn last(&self, key: Key) -> State {
        let documents = self.0.documents.lock().expect("not poisoned");
        documents.get(&key).and_then(|history| history.states.last().copied().flatten())
    }

    /// Number of acknowledged writes.
    pub fn writes(&self) -> u64 {
        self.0.writes.load(Ordering::Relaxed)
    }

    pub fn snapshot(&self) -> Documents {
        self.0.documents.lock().expect("not poisoned").clone()
    }

    /// Takes the contents after a crash as acknowledged: a write that was lost may not reappear.
    pub fn settle(&self, found: &Found) {
        for (key, history) in &mut *self.0.documents.lock().expect("not poisoned") {
            *history = History::of(found.get(key).copied());
        }
    }
}

/// Histories in which the found documents are the only possible state.
pub fn exactly(found: &Found) -> Documents {
    found.iter().map(|(key, number)| (*key, History::of(Some(*number)))).collect()
}

/// Whether a document may be in that state, by what was acknowledged before and what has been requested since.
pub fn is_explained(found: State, promised: Option<&History>, asked: Option<&History>) -> bool {
    let first = promised.map_or(0, |history| history.acknowledged);
    asked.map_or(found.is_none(), |history| history.states[first..].contains(&found))
}
