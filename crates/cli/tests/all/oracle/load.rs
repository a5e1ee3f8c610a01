//! The load: writers, and one connection that asks for checkpoints and `compact`.

use super::collection::{Collection, DATABASE, collections, compact_command};
use super::document::document;
use super::ledger::{Key, Ledger, State};
use super::{BROKEN, connect, is_tested};
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_client::{ClientError, Connection, check_reply};
use bunko_testkit::random::scramble;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Documents of one writer.
const DOCUMENTS: i32 = 40;
/// Pause between two readings of the counters.
const OBSERVATION_PAUSE: Duration = Duration::from_millis(10);
/// Pause between two requested checkpoints.
const UPKEEP_PAUSE: Duration = Duration::from_millis(100);
/// One in this many turns of upkeep, beginning with the first, is a `compact` instead.
const COMPACT_EVERY: usize = 5;

/// Error codes of a server that is shutting down.
const STOPPING: [i32; 2] = [91, 11600];

/// Durability that a write waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// The kernel has the write: it survives the end of the process.
    Written,
    /// The disk has the write: it survives a power cut.
    Journaled,
}

impl Level {
    fn write_concern(self) -> DocumentBuf {
        DocumentBuf::new().with("w", 1).with("j", self == Self::Journaled)
    }
}

/// How often a server did what the load is meant to make it do, by counters of `serverStatus`.
#[derive(Clone, Debug, Default)]
pub struct Evidence(BTreeMap<&'static str, i64>);

/// Engine (or `bunko` for the whole server), section and counter.
const COUNTERS: &[&str] = &[
    "bunko.checkpoints.count",
    "lsm.extents.segmentsMoved",
    "lsm.extents.written",
    "lsm.extents.rewritten",
    "lsm.extents.staged",
    "mmap.checkpoints",
];

impl Evidence {
    fn observe(&mut self, connection: &mut Connection) -> Option<()> {
        let reply = run(connection, "admin", &DocumentBuf::new().with("serverStatus", 1))?;
        for counter in COUNTERS {
            let (path, name) = counter.rsplit_once('.').unwrap_or_default();
            let section = path.split('.').try_fold(reply.as_ref(), |document, name| document.get(name)?.as_document());
            if let Some(ValueRef::Int64(count)) = section.and_then(|section| section.get(name)) {
                self.0.insert(counter, count);
            }
        }
        Some(())
    }

    /// Adds the counts of another server.
    pub fn add(&mut self, other: &Self) {
        for (counter, count) in &other.0 {
            *self.0.entry(counter).or_default() += count;
        }
    }

    /// # Panics
    /// If the server has not done everything that the load is meant to make it do.
    pub fn assert_complete(&self) {
        let is_tested = |counter: &&&str| {
            let (engine, _) = counter.split_once('.').unwrap_or_default();
            engine == "bunko" || is_tested(engine)
        };
        for counter in COUNTERS.iter().filter(is_tested) {
            assert!(self.0.get(counter).is_some_and(|count| *count > 0), "{counter} is 0: {self:?}");
        }
    }
}

/// Writers that run until they are told to stop or the server is gone.
pub struct Load {
    stop: Arc<AtomicBool>,
    writers: Vec<JoinHandle<()>>,
    upkeep: JoinHandle<()>,
    observer: JoinHandle<Evidence>,
}

impl Load {
    /// Starts that many writers, at least two.
    pub fn start(address: SocketAddr, writers: usize, level: Level, ledger: &Ledger) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let collections = collections();
        let last = collections.len() - 1;
        let writers = (0..writers).map(|number| {
            // Only the last writer may drop its collection.
            let position = if number == writers - 1 { last } else { number % last };
            let writer = Writer {
                connection: connect(address),
                position,
                collection: collections[position].clone(),
                first_id: number as i32 * DOCUMENTS,
                level,
                ledger: ledger.clone(),
            };
            let stop = Arc::clone(&stop);
            let step = if position == last { Writer::recreate } else { Writer::change };
            std::thread::spawn(move || writer.run(&stop, step))
        });
        let writers = writers.collect();
        let upkeep = {
            let (stop, mut connection) = (Arc::clone(&stop), connect(address));
            std::thread::spawn(move || repeat(&stop, UPKEEP_PAUSE, |turn| keep_up(&mut connection, turn)))
        };
        let observer = {
            let (stop, mut connection) = (Arc::clone(&stop), connect(address));
            std::thread::spawn(move || {
                let mut evidence = Evidence::default();
                repeat(&stop, OBSERVATION_PAUSE, |_| evidence.observe(&mut connection));
                evidence
            })
        };
        Self { stop, writers, upkeep, observer }
    }

    /// Stops the writers; returns the server's counts.
    pub fn join(self) -> Evidence {
        self.stop.store(true, Ordering::Relaxed);
        for writer in self.writers {
            writer.join().expect("a writer does not panic");
        }
        self.upkeep.join().expect("upkeep does not panic");
        self.observer.join().expect("the observer does not panic")
    }
}

/// Takes turns until told to stop or until a turn finds the server gone.
fn repeat(stop: &AtomicBool, pause: Duration, mut turn: impl FnMut(usize) -> Option<()>) {
    for number in 0.. {
        if stop.load(Ordering::Relaxed) || turn(number).is_none() {
            return;
        }
        std::thread::sleep(pause);
    }
}

/// Asks for a checkpoint or for `compact`.
fn keep_up(connection: &mut Connection, turn: usize) -> Option<()> {
    let reply = if turn.is_multiple_of(COMPACT_EVERY) {
        run(connection, DATABASE, &compact_command())
    } else {
        run(connection, "admin", &DocumentBuf::new().with("fsync", 1))
    };
    reply.map(drop)
}

/// Runs a command that must succeed; `None` if the server is gone or shutting down.
fn run(connection: &mut Connection, database: &str, command: &DocumentBuf) -> Option<DocumentBuf> {
    let failure = match connection.run_command(database, command.as_ref()) {
        Ok(reply) => match check_reply(reply.as_ref()) {
            Ok(_) => return Some(reply),
            Err(failure) => failure,
        },
        Err(ClientError::Command(failure)) => failure,
        Err(_) => return None,
    };
    assert!(STOPPING.contains(&failure.code), "{BROKEN}: {failure:?}");
    None
}

/// A connection that waits for each reply.
struct Writer {
    connection: Connection,
    /// The collection's index in the list.
    position: usize,
    collection: Collection,
    first_id: i32,
    level: Level,
    ledger: Ledger,
}

impl Writer {
    fn run(mut self, stop: &AtomicBool, step: fn(&mut Self) -> Option<()>) {
        while !stop.load(Ordering::Relaxed) {
            if step(&mut self).is_none() {
                return;
            }
        }
    }

    /// Inserts, replaces or deletes one document.
    fn change(&mut self) -> Option<()> {
        let random = scramble(self.ledger.next_number() as u64);
        // Some documents change all the time, others outlive many segments.
        let cold = (random % 1024) * (random >> 32 & 1023) / 1024;
        let key = (self.position, self.first_id + cold as i32 * DOCUMENTS / 1024);
        if self.state(key).is_none() {
            self.insert(&[key.1])
        } else if (random >> 48).is_multiple_of(4) {
            self.delete(key)
        } else {
            self.replace(key)
        }
    }

    /// Creates the collection, fills it with one batch, changes a few documents, and drops it.
    fn recreate(&mut self) -> Option<()> {
        let ids: Vec<_> = (self.first_id..self.first_id + DOCUMENTS).collect();
        let write_concern = self.level.write_concern();
        match self.collection.create(&mut self.connection, &write_concern) {
            Err(ClientError::Command(failure)) if !STOPPING.contains(&failure.code) => panic!("{BROKEN}: {failure:?}"),
            created => created.ok()?,
        }
        // After a crash some documents may exist already.
        let missing: Vec<_> = ids.iter().copied().filter(|id| self.state((self.position, *id)).is_none()).collect();
        if !missing.is_empty() {
            self.insert(&missing)?;
        }
        for id in &ids {
            let key = (self.position, *id);
            if id % 3 == 0 { self.delete(key)? } else { self.replace(key)? }
        }
        let gone: Vec<_> = ids.iter().map(|id| ((self.position, *id), None)).collect();
        let drop_it = DocumentBuf::new().with("drop", &*self.collection.name);
        self.write(&gone, drop_it).map(drop)
    }

    /// The state of a document that this writer requested last.
    fn state(&self, key: Key) -> State {
        self.ledger.last(key)
    }

    fn insert(&mut self, ids: &[i32]) -> Option<()> {
        let changes: Vec<_> = ids.iter().map(|id| ((self.position, *id), Some(self.ledger.next_number()))).collect();
        let documents: Vec<_> =
            changes.iter().map(|((_, id), number)| document(*id, number.unwrap_or_default())).collect();
        let documents: ArrayBuf = documents.iter().collect();
        let command = if ids.len() == 1 { "insert" } else { "bunkoBulkInsert" };
        let insert = DocumentBuf::new().with(command, &*self.collection.name).with("documents", &documents);
        self.write_to(changes.len(), &changes, insert)
    }

    fn replace(&mut self, key: Key) -> Option<()> {
        let number = self.ledger.next_number();
        let filter = DocumentBuf::new().with("_id", key.1);
        let update = DocumentBuf::new().with("q", &filter).with("u", &document(key.1, number));
        let updates: ArrayBuf = [&update].into_iter().collect();
        let update = DocumentBuf::new().with("update", &*self.collection.name).with("updates", &updates);
        self.write_to(1, &[(key, Some(number))], update)
    }

    fn delete(&mut self, key: Key) -> Option<()> {
        let filter = DocumentBuf::new().with("_id", key.1);
        let delete = DocumentBuf::new().with("q", &filter).with("limit", 1);
        let deletes: ArrayBuf = [&delete].into_iter().collect();
        let delete = DocumentBuf::new().with("delete", &*self.collection.name).with("deletes", &deletes);
        self.write_to(1, &[(key, None)], delete)
    }

    /// Sends a write that must match that many documents.
    fn write_to(&mut self, count: usize, changes: &[(Key, State)], command: DocumentBuf) -> Option<()> {
        let reply = self.write(changes, command)?;
        let n = check_reply(reply.as_ref()).map_or(0, |reply| reply.n);
        assert_eq!(n, count as i64, "{BROKEN}: documents are lost while the server runs: {changes:?}: {reply:?}");
        Some(())
    }

    fn write(&mut self, changes: &[(Key, State)], command: DocumentBuf) -> Option<DocumentBuf> {
        self.ledger.ask(changes);
        let command = command.with("writeConcern", &self.level.write_concern());
        let reply = run(&mut self.connection, DATABASE, &command)?;
        self.ledger.acknowledge(changes);
        Some(reply)
    }
}
