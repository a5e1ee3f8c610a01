//! A writer that survives kills of the server, and knows which writes a restore to a moment must have.
//!
//! Each write inserts two documents in one record of the log: an amount, and the same amount taken away. So a state that has a
//! part of a write has a sum that is not zero.

use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_client::{ClientError, Connection, Uri, check_reply};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub const DATABASE: &str = "ledger";
/// The pause before a server that is gone is tried again.
const PAUSE: Duration = Duration::from_millis(50);
/// MongoDB's `DuplicateKey`: an earlier attempt was done.
const DUPLICATE: i32 = 11000;

pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as u64
}

/// Writes that were sent and acknowledged, in milliseconds since 1970.
#[derive(Default)]
struct Times {
    sent: Vec<u64>,
    acknowledged: Vec<u64>,
}

pub struct Writer {
    collection: String,
    times: Arc<Mutex<Times>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub fn start(uri: &str, collection: &str, padding: usize) -> Self {
        let (times, is_over) = (Arc::<Mutex<Times>>::default(), Arc::<AtomicBool>::default());
        let thread = std::thread::spawn({
            let (uri, collection) = (uri.parse().expect("a URI"), collection.to_owned());
            let (times, is_over) = (Arc::clone(&times), Arc::clone(&is_over));
            move || write(&uri, &collection, padding, (&times, &is_over))
        });
        Self { collection: collection.to_owned(), times, is_over, thread: Some(thread) }
    }

    /// Number of acknowledged writes.
    pub fn acknowledged(&self) -> usize {
        self.times.lock().expect("no writer panicked").acknowledged.len()
    }

    pub fn stop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the writer does not panic");
        }
    }

    /// Checks the documents of a server that was restored to that moment. Returns the number of writes that it has.
    pub fn check(&self, connection: &mut Connection, to_ms: u64) -> usize {
        let times = self.times.lock().expect("no writer panicked");
        let find = DocumentBuf::new().with("find", self.collection.as_str());
        let found = connection.find_all(DATABASE, find.as_ref()).expect("readable");
        let (mut sum, mut numbers) = (0, Vec::new());
        for document in found {
            let document = document.expect("readable");
            let number = |name: &str| bunko_bson::number::as_i64_exact(document.as_ref().get(name).expect("is there"));
            sum += number("amount").expect("a number");
            numbers.push(number("write").expect("a number"));
        }
        numbers.sort_unstable();
        let count = numbers.len() / 2;
        assert_eq!(sum, 0, "{}: a write was restored in part", self.collection);
        let all: Vec<_> = (0..count as i64).flat_map(|number| [number, number]).collect();
        assert_eq!(numbers, all, "{}: a write is missing between others", self.collection);
        let must = times.acknowledged.partition_point(|at| *at < to_ms);
        let may = times.sent.partition_point(|at| *at <= to_ms);
        assert!(
            (must..=may).contains(&count),
            "{}: {count} writes, and {must} to {may} were done by {to_ms}",
            self.collection
        );
        count
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

fn write(uri: &Uri, collection: &str, padding: usize, (times, is_over): (&Mutex<Times>, &AtomicBool)) {
    let (mut number, mut connection) = (0_i64, None);
    let padding = "x".repeat(padding);
    while !is_over.load(Ordering::Relaxed) {
        let document = |half: i64, amount: i64| {
            let document = DocumentBuf::new().with("_id", number * 2 + half).with("write", number);
            document.with("amount", amount).with("padding", padding.as_str())
        };
        let documents: ArrayBuf = [document(0, number + 1), document(1, -number - 1)].iter().collect();
        let insert = DocumentBuf::new().with("insert", collection).with("documents", &documents);
        {
            let mut times = times.lock().expect("no writer panicked");
            if times.sent.len() as i64 == number {
                times.sent.push(now_ms());
            }
        }
        match attempt(uri, &mut connection, &insert) {
            Ok(()) => {
                times.lock().expect("no writer panicked").acknowledged.push(now_ms());
                number += 1;
            }
            // A primary that steps down refuses; the next one is asked.
            Err(ClientError::Command(error)) if !bunko_tools::is_transient(&ClientError::Command(error.clone())) => {
                panic!("{collection}: {error}")
            }
            Err(_) => {
                connection = None;
                std::thread::sleep(PAUSE);
            }
        }
    }
}

fn attempt(uri: &Uri, connection: &mut Option<Connection>, insert: &DocumentBuf) -> Result<(), ClientError> {
    let open = match connection {
        Some(open) => open,
        none => none.insert(Connection::connect(uri)?),
    };
    let replied = open.run_command(DATABASE, insert.as_ref());
    match replied.and_then(|reply| check_reply(reply.as_ref()).map(drop).map_err(ClientError::Command)) {
        Err(ClientError::Command(error)) if error.code == DUPLICATE => until_committed(open, insert),
        outcome => outcome,
    }
}

/// Waits until a write of an earlier attempt is committed: an election may take it back before.
fn until_committed(connection: &mut Connection, insert: &DocumentBuf) -> Result<(), ClientError> {
    let documents = insert.as_ref().get("documents").and_then(ValueRef::as_array).expect("documents");
    let first = documents.iter().next().and_then(ValueRef::as_document).expect("a document");
    let find = DocumentBuf::new()
        .with("find", insert.as_ref().first().expect("a command").value)
        .with("filter", &DocumentBuf::new().with("_id", first.get("_id").expect("an _id")))
        .with("limit", 1)
        .with("readConcern", &DocumentBuf::new().with("level", "majority"));
    for _ in 0..600 {
        let reply = connection.run_command(DATABASE, find.as_ref())?;
        check_reply(reply.as_ref()).map_err(ClientError::Command)?;
        let cursor = reply.as_ref().get("cursor").and_then(ValueRef::as_document).expect("a cursor");
        if cursor.get("firstBatch").and_then(ValueRef::as_array).is_some_and(|batch| batch.count() > 0) {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
    panic!("a write that exists is not committed");
}
