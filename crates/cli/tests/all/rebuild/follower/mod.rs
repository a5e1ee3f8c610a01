//! A consumer of a change stream that is killed at random, resumes, and rebuilds collections from the events.

mod copy;

pub use copy::{Copy, Documents, Seen};

use crate::caller::{Address, Caller, code, is_ok};
use crate::rebuild::BROKEN;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, Timestamp, ValueRef, number};
use copy::{Goes, shown};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One in this many events is the last before the consumer is killed.
const EVENTS_PER_DEATH: u64 = 60;
/// After one in this many events the consumer saves its state.
const EVENTS_PER_KEEPING: u64 = 15;
/// Error codes after which a stream is opened again: the server was killed meanwhile.
const RESUMABLE: [i64; 3] = [43, 91, 11600];

/// The scope that a consumer follows.
#[derive(Clone, Copy)]
pub struct Scope {
    pub database: &'static str,
    /// `None` to follow the whole database, or all databases.
    pub collection: Option<&'static str>,
    /// The collection in which marks are written for this consumer.
    pub marked: &'static str,
}

/// Progress of a consumer, shared with the test.
pub struct Progress {
    pub is_over: AtomicBool,
    /// The mark up to which a copy is requested.
    pub mark: AtomicI64,
    /// The mark of the last copy, and that copy.
    pub copy: Mutex<(i64, Copy)>,
    pub seen: Mutex<Seen>,
    pub deaths: AtomicI64,
}

/// The state that a consumer saves.
#[derive(Clone, Default)]
struct Kept {
    copy: Copy,
    token: Option<DocumentBuf>,
    /// Whether the token is that of an invalidation.
    is_invalid: bool,
}

pub struct Follower {
    pub scope: Scope,
    caller: Caller,
    from: Timestamp,
    now: Kept,
    kept: Kept,
    cursor: Option<i64>,
    progress: Arc<Progress>,
}

impl Follower {
    /// Starts to follow events from a time on; the returned progress tells how far it is.
    pub fn start(
        scope: Scope,
        address: &Address,
        from: Timestamp,
        seed: u64,
    ) -> (Arc<Progress>, std::thread::JoinHandle<()>) {
        let progress = Arc::new(Progress {
            is_over: AtomicBool::new(false),
            mark: AtomicI64::new(0),
            copy: Mutex::default(),
            seen: Mutex::default(),
            deaths: AtomicI64::new(0),
        });
        let mut follower = Self {
            scope,
            caller: Caller::new(address, seed),
            from,
            now: Kept::default(),
            kept: Kept::default(),
            cursor: None,
            progress: Arc::clone(&progress),
        };
        (progress, std::thread::spawn(move || follower.follow()))
    }

    fn follow(&mut self) {
        while !self.progress.is_over.load(Ordering::Relaxed) {
            let body = match self.cursor {
                None => self.opening(),
                Some(cursor) => {
                    let collection = self.scope.collection.unwrap_or("$cmd.aggregate");
                    let body = DocumentBuf::new().with("getMore", cursor).with("collection", collection);
                    body.with("maxTimeMS", 100).with("batchSize", 1 + self.caller.below(40) as i32)
                }
            };
            let body = body.with("$db", self.scope.database);
            match self.caller.send_document(&body) {
                Some(reply) if is_ok(&reply) => self.take(&reply),
                Some(reply) if !RESUMABLE.contains(&code(&reply)) => {
                    panic!("{BROKEN}: {} to {}", shown(reply.as_ref()), shown(body.as_ref()))
                }
                // As a driver does, it resumes after the last event that it has seen.
                _ => {
                    self.cursor = None;
                    self.caller.hang_up();
                    // The server may be down.
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
            self.report();
        }
    }

    fn opening(&mut self) -> DocumentBuf {
        // The copies that `convertToCapped` makes are events of a migration.
        let mut stage = DocumentBuf::new().with("showExpandedEvents", true).with("showMigrationEvents", true);
        if self.scope.database == "admin" {
            stage.append("allChangesForCluster", true);
        }
        match &self.now.token {
            None => stage.append("startAtOperationTime", ValueRef::Timestamp(self.from)),
            Some(token) if self.now.is_invalid || self.caller.below(2) == 0 => stage.append("startAfter", token),
            Some(token) => stage.append("resumeAfter", token),
        };
        let pipeline: ArrayBuf = [&DocumentBuf::new().with("$changeStream", &stage)].into_iter().collect();
        let body = match self.scope.collection {
            Some(collection) => DocumentBuf::new().with("aggregate", collection),
            None => DocumentBuf::new().with("aggregate", 1),
        };
        let cursor = DocumentBuf::new().with("batchSize", self.caller.below(3) as i32);
        body.with("pipeline", &pipeline).with("cursor", &cursor)
    }

    fn take(&mut self, reply: &DocumentBuf) {
        let cursor = reply.as_ref().get("cursor").and_then(ValueRef::as_document).expect("a cursor");
        let batch = cursor.get("firstBatch").or(cursor.get("nextBatch")).and_then(ValueRef::as_array);
        let id = cursor.get("id").and_then(number::as_i64_exact).expect("an id");
        self.cursor = (id != 0).then_some(id);
        let batch = batch.unwrap_or(ArrayRef::EMPTY);
        for event in batch.iter().filter_map(ValueRef::as_document) {
            self.take_event(event);
            if self.caller.below(EVENTS_PER_KEEPING) == 0 {
                self.kept = self.now.clone();
            }
            if self.caller.below(EVENTS_PER_DEATH) == 0 {
                // A killed consumer loses its unsaved state and the rest of the batch.
                self.now = self.kept.clone();
                self.cursor = None;
                self.caller.hang_up();
                self.progress.deaths.fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
        if let Some(token) = cursor.get("postBatchResumeToken").and_then(ValueRef::as_document) {
            let is_next = self.now.token.as_ref().is_none_or(|before| data(before.as_ref()) <= data(token));
            assert!(is_next, "{BROKEN}: a batch ends with {}, which is earlier", shown(token));
            self.now.token = Some(token.to_owned());
        }
        assert!(id != 0 || self.now.is_invalid, "{BROKEN}: the stream has ended");
    }

    fn take_event(&mut self, event: DocumentRef<'_>) {
        let token = event.get("_id").and_then(ValueRef::as_document).expect("a token");
        let is_next = self.now.token.as_ref().is_none_or(|before| data(before.as_ref()) < data(token));
        assert!(is_next, "{BROKEN}: an event that is not later than the one before: {}", shown(event));
        let mut seen = Seen::default();
        std::mem::swap(&mut seen, &mut self.progress.seen.lock().expect("not poisoned"));
        let goes = self.now.copy.apply(event, &mut seen);
        *self.progress.seen.lock().expect("not poisoned") = seen;
        if let Some(collection) = self.scope.collection {
            // A collection's stream does not follow it to a new name.
            let own = format!("{}.{collection}", self.scope.database);
            self.now.copy.0.retain(|name, _| *name == own);
        }
        self.now.token = Some(token.to_owned());
        self.now.is_invalid = goes == Goes::Nowhere;
    }

    /// Publishes the copy once it has reached the requested mark.
    fn report(&self) {
        let mark = self.progress.mark.load(Ordering::Relaxed);
        if self.now.copy.number(self.scope.marked, "mark", "mark") == Some(mark) {
            *self.progress.copy.lock().expect("not poisoned") = (mark, self.now.copy.clone());
        }
    }
}

fn data(token: DocumentRef<'_>) -> &str {
    token.get("_data").and_then(ValueRef::as_str).expect("a token")
}
