//! Writers that remember what was acknowledged, and the check that all of it is still there.

use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef};
use bunko_client::{Connection, Uri};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

const DATABASE: &str = "crash";
const COLLECTION: &str = "documents";

/// The server under test: the one that cargo built, or the one that a suite names.
pub fn binary() -> PathBuf {
    std::env::var_os("BUNKO_BINARY").map_or_else(|| env!("CARGO_BIN_EXE_bunko").into(), PathBuf::from)
}

/// What a write waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
// Each suite that shares this file uses one of them.
#[allow(dead_code)]
pub enum Level {
    /// The kernel: survives the process.
    Written,
    /// The disk: survives the power.
    Journaled,
}

/// Every acknowledged `_id` and the number in its document.
#[derive(Clone, Default)]
pub struct Acknowledged(Arc<Mutex<BTreeMap<String, i64>>>);

impl Acknowledged {
    pub fn snapshot(&self) -> BTreeMap<String, i64> {
        self.0.lock().expect("not poisoned").clone()
    }
}

pub fn connect(address: SocketAddr) -> Connection {
    let uri: Uri = format!("mongodb://{address}/?connectTimeoutMS=10000").parse().expect("a valid URI");
    Connection::connect(&uri).expect("the server accepts connections")
}

/// Creates what the writers write into: a secondary index must agree with the records too.
pub fn prepare(address: SocketAddr) {
    let key = DocumentBuf::new().with("n", 1);
    let index = DocumentBuf::new().with("key", &key).with("name", "n_1").with("unique", true);
    let indexes: ArrayBuf = [&index].into_iter().collect();
    let command = DocumentBuf::new().with("createIndexes", COLLECTION).with("indexes", &indexes);
    connect(address).run_command(DATABASE, command.as_ref()).expect("an index");
}

/// Writers that run until they are told to stop or the server is gone.
pub struct Writers {
    stop: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Writers {
    pub fn start(address: SocketAddr, count: usize, round: usize, level: Level, acknowledged: &Acknowledged) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = (0..count)
            .map(|writer| {
                let (stop, acknowledged) = (Arc::clone(&stop), acknowledged.clone());
                let mut connection = connect(address);
                std::thread::spawn(move || {
                    for sequence in 0.. {
                        if stop.load(Ordering::Relaxed) {
                            return;
                        }
                        let number = ((round * 1000 + writer) * 1_000_000 + sequence) as i64;
                        let id = format!("{round}-{writer}-{sequence}");
                        if insert(&mut connection, &id, number, level).is_err() {
                            return;
                        }
                        acknowledged.0.lock().expect("not poisoned").insert(id, number);
                    }
                })
            })
            .collect();
        Self { stop, threads }
    }

    pub fn join(self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().expect("a writer does not panic");
        }
    }
}

fn pad(number: i64) -> String {
    format!("{number:->400}")
}

fn insert(connection: &mut Connection, id: &str, number: i64, level: Level) -> Result<(), bunko_client::ClientError> {
    let document = DocumentBuf::new().with("_id", id).with("n", number).with("pad", &pad(number));
    let documents: ArrayBuf = [&document].into_iter().collect();
    let mut command = DocumentBuf::new().with("insert", COLLECTION).with("documents", &documents);
    if level == Level::Journaled {
        command.append("writeConcern", &DocumentBuf::new().with("w", 1).with("j", true));
    }
    connection.run_command(DATABASE, command.as_ref()).map(drop)
}

/// Every acknowledged document is there, none is half there, indexes agree with records.
pub fn check(address: SocketAddr, acknowledged: &BTreeMap<String, i64>) -> Result<(), String> {
    let mut connection = connect(address);
    let mut found = BTreeMap::new();
    let find = DocumentBuf::new().with("find", COLLECTION).with("batchSize", 10_000);
    for document in connection.find_all(DATABASE, find.as_ref()).map_err(|error| error.to_string())? {
        let document = document.map_err(|error| error.to_string())?;
        let (id, number) = whole(document.as_ref()).ok_or_else(|| format!("half a document: {document:?}"))?;
        found.insert(id, number);
    }
    let lost: Vec<_> = acknowledged.iter().filter(|(id, number)| found.get(*id) != Some(number)).take(5).collect();
    if !lost.is_empty() {
        return Err(format!(
            "{} found, {} acknowledged; lost, among others: {lost:?}",
            found.len(),
            acknowledged.len()
        ));
    }
    let validate = DocumentBuf::new().with("validate", COLLECTION).with("full", true);
    let reply = connection.run_command(DATABASE, validate.as_ref()).map_err(|error| error.to_string())?;
    if !matches!(reply.as_ref().get("valid"), Some(ValueRef::Boolean(true))) {
        return Err(format!("validate: {reply:?}"));
    }
    let count = DocumentBuf::new().with("count", COLLECTION);
    let reply = connection.run_command(DATABASE, count.as_ref()).map_err(|error| error.to_string())?;
    match reply.as_ref().get("n") {
        Some(ValueRef::Int32(n)) if n as usize == found.len() => Ok(()),
        other => Err(format!("count says {other:?}, a scan finds {}", found.len())),
    }
}

fn whole(document: DocumentRef<'_>) -> Option<(String, i64)> {
    let id = document.get("_id")?.as_str()?;
    let Some(ValueRef::Int64(number)) = document.get("n") else { return None };
    (document.get("pad")?.as_str()? == pad(number)).then(|| (id.to_owned(), number))
}
