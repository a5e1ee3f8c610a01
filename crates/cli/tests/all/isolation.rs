//! Isolation of transactions of several clients, through aborts and kill -9, judged by crate `adya`: clients append to
//! lists and read them, and the transactions must form no cycle that snapshot isolation forbids.
//!
//! `tests/planted/run` plants bugs and shows that this test finds them.

use crate::caller::{Address, Caller, code, is_ok};
use crate::oracle::{durable_engines, start};
use crate::peer::Peer;
use adya::{History, Opts, Report, Valid, Workload, check};
use bunko_bson::{ArrayRef, DocumentBuf, ValueRef, number};
use bunko_testkit::patience::wait_until;
use bunko_testkit::process::temporary_dbpath;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const BROKEN: &str = "a promise is broken";
const CLIENTS: u32 = 8;
const KEYS: u64 = 6;
const KILLS: usize = 4;
/// Transactions that all clients together commit between two kills; each kill comes after a few more than the last.
const BETWEEN_KILLS: usize = 150;
/// Pause before a request is sent again: the server may be down.
const RETRY_PAUSE: Duration = Duration::from_millis(5);
/// The commit of one in this many transactions is a chain of records in the log.
const LARGE: u64 = 60;
/// Documents of 1 MiB in a large transaction.
const LARGE_DOCUMENTS: u32 = 16;
const UNKNOWN_CODES: [i64; 2] = [91, 11600];

/// State that the clients share.
#[derive(Default)]
struct Place {
    is_over: AtomicBool,
    committed: AtomicUsize,
    last_value: AtomicI64,
    /// A line for each beginning and each end of a transaction, in the order in which they happened.
    history: Mutex<String>,
}

enum Step {
    Append(u64, i64),
    Read(u64),
}

/// How a transaction ended.
#[derive(PartialEq)]
enum End {
    Committed(Vec<Option<Vec<i64>>>),
    Aborted,
}

struct Client {
    number: u32,
    transaction: i64,
    caller: Caller,
    place: Arc<Place>,
}

impl Client {
    /// Sends a command of the transaction; `None` if no reply arrived.
    fn send(&mut self, database: &str, text: &str) -> Option<DocumentBuf> {
        let session = format!("lsid: {{id: UUID('00000000-0000-4000-8000-{:012}')}}", self.number);
        let text = format!("{{{text}, {session}, txnNumber: NumberLong({}), autocommit: false}}", self.transaction);
        self.caller.send(database, &text)
    }

    /// Random reads and appends, or reads of all keys. Reads are never refused, and reads of all keys show best whether
    /// a commit becomes visible in parts.
    fn steps(&mut self) -> Vec<Step> {
        if self.caller.below(6) == 0 {
            return (0..KEYS).map(Step::Read).collect();
        }
        let count = 1 + self.caller.below(4);
        (0..count)
            .map(|_| {
                let key = self.caller.below(KEYS);
                if self.caller.below(2) == 0 {
                    Step::Read(key)
                } else {
                    Step::Append(key, self.place.last_value.fetch_add(1, Ordering::Relaxed) + 1)
                }
            })
            .collect()
    }

    fn carry_out(&mut self, steps: &[Step]) -> End {
        self.transaction += 1;
        let mut read = Vec::new();
        let large = self.caller.below(LARGE) == 0;
        for (position, step) in steps.iter().enumerate() {
            let begins = if position == 0 { ", startTransaction: true" } else { "" };
            let text = match step {
                Step::Append(key, value) => format!(
                    "update: 'lists', updates: [{{q: {{_id: {key}}}, u: {{$push: {{l: {value}}}}}, upsert: true}}]{begins}"
                ),
                Step::Read(key) => format!("find: 'lists', filter: {{_id: {key}}}{begins}"),
            };
            let Some(reply) = self.send("test", &text) else { return End::Aborted };
            if !is_ok(&reply) {
                return End::Aborted;
            }
            read.push(matches!(step, Step::Read(_)).then(|| list_of(&reply)));
        }
        if large && !self.make_large() {
            return End::Aborted;
        }
        if self.caller.below(8) == 0 {
            self.send("admin", "abortTransaction: 1");
            return End::Aborted;
        }
        // The commit is sent until a reply arrives: a restarted server knows whether the transaction was committed.
        loop {
            match self.send("admin", "commitTransaction: 1") {
                Some(reply) if is_ok(&reply) => return End::Committed(read),
                Some(reply) if !UNKNOWN_CODES.contains(&code(&reply)) => return End::Aborted,
                _ => std::thread::sleep(RETRY_PAUSE),
            }
        }
    }

    /// Adds so many documents that the commit is a chain of records. The next large transaction replaces them.
    fn make_large(&mut self) -> bool {
        let pad = "x".repeat(1 << 20);
        (0..LARGE_DOCUMENTS).all(|id| {
            let id = format!("{}-{id}", self.number);
            let update = format!("{{q: {{_id: '{id}'}}, u: {{_id: '{id}', pad: '{pad}'}}, upsert: true}}");
            self.send("test", &format!("update: 'large', updates: [{update}]")).is_some_and(|reply| is_ok(&reply))
        })
    }

    fn work(mut self) {
        while !self.place.is_over.load(Ordering::Relaxed) {
            let steps = self.steps();
            self.note("invoke", &steps, &[]);
            match self.carry_out(&steps) {
                End::Committed(read) => {
                    self.note("ok", &steps, &read);
                    self.place.committed.fetch_add(1, Ordering::Relaxed);
                }
                End::Aborted => {
                    self.note("fail", &steps, &[]);
                    std::thread::sleep(RETRY_PAUSE);
                }
            }
        }
    }

    fn note(&self, kind: &str, steps: &[Step], read: &[Option<Vec<i64>>]) {
        let mut value = String::new();
        for (position, step) in steps.iter().enumerate() {
            if position > 0 {
                value.push(',');
            }
            let _ = match step {
                Step::Append(key, added) => write!(value, "[\"append\",{key},{added}]"),
                Step::Read(key) => match read.get(position).and_then(Option::as_ref) {
                    None => write!(value, "[\"r\",{key},null]"),
                    Some(list) => write!(value, "[\"r\",{key},{list:?}]"),
                },
            };
        }
        let mut history = self.place.history.lock().expect("not poisoned");
        let _ = writeln!(history, "{{\"type\":\"{kind}\",\"process\":{},\"value\":[{value}]}}", self.number);
    }
}

/// The list in the first batch of a find; empty if there is no document.
fn list_of(reply: &DocumentBuf) -> Vec<i64> {
    let cursor = reply.as_ref().get("cursor").and_then(ValueRef::as_document).expect("a cursor");
    let batch = cursor.get("firstBatch").and_then(ValueRef::as_array).unwrap_or(ArrayRef::EMPTY);
    let document = batch.iter().next().and_then(ValueRef::as_document);
    let list = document.and_then(|document| document.get("l")).and_then(ValueRef::as_array).unwrap_or(ArrayRef::EMPTY);
    list.iter().map(|value| number::as_i64_exact(value).expect("a number")).collect()
}

fn judged(history: &str, model: &str) -> Report {
    let history = History::from_json(history).expect("a history");
    let options = Opts { models: vec![model.to_owned()], timeout: Duration::from_secs(20), ..Opts::default() };
    check(&history, Workload::ListAppend, &options)
}

fn survive(engine: &str) {
    let dbpath = temporary_dbpath();
    let mut server = start(engine, dbpath.path()).expect("the server starts");
    let mut peer = Peer::connect(server.address());
    let lists: Vec<String> = (0..KEYS).map(|key| format!("{{_id: {key}, l: []}}")).collect();
    let text = format!("{{insert: 'lists', documents: [{}]}}", lists.join(", "));
    assert_eq!(peer.text("test", &text), format!("{{n: {KEYS}, ok: 1.0}}"));
    assert_eq!(peer.text("test", "{create: 'large'}"), "{ok: 1.0}");
    let address: Address = Arc::new(Mutex::new(server.address()));
    let place = Arc::new(Place::default());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let place = Arc::clone(&place);
            let caller = Caller::new(&address, u64::from(number) + 7);
            let client = Client { number, transaction: 0, caller, place };
            std::thread::spawn(move || client.work())
        })
        .collect();
    let commit = |count: usize| {
        let enough = place.committed.load(Ordering::Relaxed) + count;
        wait_until("the clients commit", || place.committed.load(Ordering::Relaxed) >= enough);
    };
    for kill in 0..KILLS {
        commit(BETWEEN_KILLS + 7 * kill);
        server.kill();
        server = start(engine, dbpath.path()).expect("the server starts again");
        *address.lock().expect("not poisoned") = server.address();
    }
    commit(BETWEEN_KILLS / 3);
    place.is_over.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().expect("no client fails");
    }
    let history = place.history.lock().expect("not poisoned").clone();
    let count = |kind: &str| history.lines().filter(|line| line.contains(&format!("\"type\":\"{kind}\""))).count();
    assert!(count("ok") > 200 && count("fail") > 20, "{engine}: too few transactions to judge by");
    let report = judged(&history, "strong-snapshot-isolation");
    let first = report.anomalies.values().flatten().next();
    assert!(report.valid == Valid::True, "{BROKEN}: {engine}: {:?}: {first:?}", report.anomaly_types);
    println!(
        "{engine}: {} transactions committed, {} aborted; beyond snapshot isolation: {:?}",
        count("ok"),
        count("fail"),
        judged(&history, "strict-serializable").anomaly_types
    );
    drop(peer);
    assert!(Peer::connect(server.address()).text("test", "{validate: 'lists', full: true}").contains("valid: true"));
}

#[test]
fn transactions_are_isolated_through_aborts_and_kills() {
    durable_engines().into_iter().for_each(survive);
}

/// Two transactions that each read a document that the other changes: snapshot isolation allows it, in MongoDB and
/// here.
#[test]
fn write_skew_is_allowed() {
    let engine = durable_engines()[0];
    let dbpath = temporary_dbpath();
    let server = start(engine, dbpath.path()).expect("the server starts");
    let text = "{insert: 'lists', documents: [{_id: 1, l: []}, {_id: 2, l: []}]}";
    assert_eq!(Peer::connect(server.address()).text("test", text), "{n: 2, ok: 1.0}");
    let address: Address = Arc::new(Mutex::new(server.address()));
    let place = Arc::new(Place::default());
    let mut clients = [1, 2].map(|number| {
        let place = Arc::clone(&place);
        Client { number, transaction: 1, caller: Caller::new(&address, 1), place }
    });
    let steps = |own: u64| [Step::Read(1), Step::Read(2), Step::Append(own, own as i64)];
    for client in &mut clients {
        client.note("invoke", &steps(u64::from(client.number)), &[]);
    }
    let mut read = [Vec::new(), Vec::new()];
    for key in [1, 2] {
        for (client, read) in clients.iter_mut().zip(&mut read) {
            let begins = if key == 1 { ", startTransaction: true" } else { "" };
            let reply =
                client.send("test", &format!("find: 'lists', filter: {{_id: {key}}}{begins}")).expect("a reply");
            read.push(Some(list_of(&reply)));
        }
    }
    for client in &mut clients {
        let own = client.number;
        let update = format!("{{q: {{_id: {own}}}, u: {{$push: {{l: {own}}}}}}}");
        let reply = client.send("test", &format!("update: 'lists', updates: [{update}]")).expect("a reply");
        assert!(is_ok(&reply), "{reply:?}");
    }
    for (client, read) in clients.iter_mut().zip(&read) {
        let reply = client.send("admin", "commitTransaction: 1").expect("a reply");
        assert!(is_ok(&reply), "{reply:?}");
        client.note("ok", &steps(u64::from(client.number)), read);
    }
    let history = place.history.lock().expect("not poisoned").clone();
    assert_eq!(judged(&history, "serializable").anomaly_types, ["G2-item"]);
    assert!(judged(&history, "strong-snapshot-isolation").valid == Valid::True);
}
