//! A store under test, which can be closed and opened again.

use crate::directory::{Directory, entries};
use crate::roster::OPTIONS;
use bunko_engines::Entry;
use bunko_store::{EngineTable, LogOptions, StorageError, Store, StoreOptions, segment_of};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Longest time that an abandoned store may take to release its directory: its background threads hold it during their
/// work.
const LOCKED_FOR_MAX: Duration = Duration::from_secs(5);

/// A store in a directory of its own.
pub struct Subject {
    own: &'static Entry,
    store: Option<Arc<Store>>,
    /// The present directory is the last. An abandoned store may still write into the earlier ones.
    directories: Vec<Directory>,
    complaints: Complaints,
}

/// Messages of background errors and log failures.
pub type Complaints = Arc<Mutex<Vec<String>>>;

/// Opens a store with `own` as its own engine, whose collections may be in any other engine too.
pub fn open(path: &Path, own: &Entry) -> Result<Arc<Store>, StorageError> {
    open_with(path, &bunko_engines::table(own, &OPTIONS), &Complaints::default())
}

/// Opens a store with the given engines; background errors and log failures are added to `complaints`.
pub fn open_with(path: &Path, table: &EngineTable, complaints: &Complaints) -> Result<Arc<Store>, StorageError> {
    let complain = {
        let complaints = Arc::clone(complaints);
        move |complaint| complaints.lock().expect("no panic while it is held").push(complaint)
    };
    let on_failure = complain.clone();
    let options = StoreOptions {
        log: LogOptions {
            on_failure: Arc::new(move |error| on_failure(format!("the log failed: {error}"))),
            ..LogOptions::default()
        },
        on_background_error: Arc::new(move |what, error| complain(format!("{what}: {error}"))),
        ..StoreOptions::at_rest()
    };
    let deadline = Instant::now() + LOCKED_FOR_MAX;
    loop {
        match Store::open(path, options.clone(), table.clone()) {
            Err(StorageError::Locked { .. }) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(1));
            }
            outcome => return outcome,
        }
    }
}

impl Subject {
    /// A new store.
    pub fn new(own: &'static Entry) -> Self {
        let mut subject =
            Self { own, store: None, directories: vec![Directory::default()], complaints: Complaints::default() };
        subject.open();
        subject
    }

    /// The open store.
    pub fn store(&self) -> &Arc<Store> {
        self.store.as_ref().expect("a store is open between calls")
    }

    /// The store's own engine.
    pub fn own(&self) -> &'static Entry {
        self.own
    }

    /// The store's directory, whether the store uses it or not.
    pub fn path(&self) -> &Path {
        self.directories.last().expect("one at least").path()
    }

    fn open(&mut self) {
        let table = bunko_engines::table(self.own, &OPTIONS);
        self.store = Some(open_with(self.path(), &table, &self.complaints).expect("the store opens"));
    }

    /// Closes the store as a stopping server does, and opens it again.
    pub fn reopen(&mut self) {
        self.close();
        self.open();
    }

    /// Closes the store.
    pub fn close(&mut self) {
        if let Some(store) = self.store.take() {
            store.close().expect("the store closes");
        }
        self.content();
    }

    /// Goes on as after a kill of the process: with the files as they are while the store has them open.
    pub fn crash(&mut self) {
        let copy = Directory::copy_of(self.path());
        remove_preallocated(&copy.path().join("log"), self.store().statistics().log.next_lsn);
        self.content();
        self.store = None;
        self.directories.push(copy);
        self.open();
    }

    /// Checks that there are no complaints.
    ///
    /// # Panics
    /// If there are any; the message has them.
    pub fn content(&self) {
        let complaints = self.complaints.lock().expect("no panic while it is held").clone();
        assert!(complaints.is_empty(), "in the background: {}", complaints.join("; "));
    }
}

/// Removes the preallocated segments after the log's end: a start reads them, which would take longer than everything
/// else. A kill may also come before they are made.
pub fn remove_preallocated(log: &Path, end: u64) {
    for path in entries(log) {
        let name = path.file_stem().and_then(OsStr::to_str);
        let number = name.and_then(|name| name.parse::<u64>().ok());
        if number.is_none_or(|number| number > segment_of(end)) {
            std::fs::remove_file(&path).expect("removed");
        }
    }
}
