//! Retryable writes and transactions despite lost replies and kill -9: a write that is sent again is done once, and a
//! transaction is done completely or not at all.

use crate::oracle::{durable_engines, start};
use crate::peer::{Peer, command, message};
use bunko_bson::{DocumentRef, ValueRef, number};
use bunko_testkit::patience::wait_until;
use bunko_testkit::process::temporary_dbpath;
use bunko_testkit::random::Random;
use bunko_testkit::shell;
use bunko_wire::{HEADER_BYTES, Message, MessageFlags, needed_bytes};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const CLIENTS: u32 = 8;
const KILLS: usize = 6;
/// Turns that all clients together take between two kills. Each kill comes after a few more than the last, and so into
/// another part of a turn.
const TURNS: usize = 25;
/// Longest wait for a reply, after which the client sends the request again.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause before a request is sent again: the server may be down.
const RETRY_PAUSE: Duration = Duration::from_millis(5);

/// The server's current address, how many turns were taken, and whether clients are to stop.
struct Place {
    address: Mutex<SocketAddr>,
    turns: AtomicUsize,
    is_over: AtomicBool,
}

/// Writes of a client that were acknowledged.
#[derive(Default)]
struct Told {
    increments: i64,
    counted: i64,
    inserted: i64,
    upserted: i64,
    transferred: i64,
    retried: u64,
}

struct Client {
    number: u32,
    transaction: i64,
    /// State of the generator that decides which replies are lost.
    random: Random,
    place: Arc<Place>,
    told: Told,
}

impl Client {
    fn session(&self) -> String {
        format!("lsid: {{id: UUID('00000000-0000-0000-0000-{:012}')}}", self.number)
    }

    /// Sends a command until a reply arrives, and returns it. It must be done only once.
    fn do_once(&mut self, database: &str, text: &str) -> bunko_bson::DocumentBuf {
        self.transaction += 1;
        let session = self.session();
        let text = format!("{}, {session}, txnNumber: NumberLong({})}}", &text[..text.len() - 1], self.transaction);
        let request = message(1, MessageFlags::NONE, command(database, &text).as_ref());
        let mut attempts = 0;
        loop {
            attempts += 1;
            if let Some(reply) = self.attempt(&request) {
                assert_eq!(whole(reply.as_ref(), "ok"), Some(1), "{text}: {}", print(reply.as_ref()));
                assert!(reply.as_ref().get("writeErrors").is_none(), "{text}: {}", print(reply.as_ref()));
                self.told.retried += u64::from(attempts > 1);
                return reply;
            }
            std::thread::sleep(RETRY_PAUSE);
        }
    }

    /// Moves 1 from one collection to another, in transactions that are begun anew until one is committed.
    fn transfer(&mut self) {
        let own = self.number;
        let part = |collection: &str, amount: i32, begins: &str| {
            let update = format!("{{q: {{_id: {own}}}, u: {{$inc: {{n: {amount}}}}}, upsert: true}}");
            ("test", format!("update: '{collection}', updates: [{update}], {begins}"))
        };
        let parts = [part("from", -1, "startTransaction: true, "), part("to", 1, "")];
        loop {
            self.transaction += 1;
            let is_done = |reply: Option<bunko_bson::DocumentBuf>| {
                reply.is_some_and(|reply| whole(reply.as_ref(), "ok") == Some(1))
            };
            if !parts.iter().all(|(database, text)| is_done(self.attempt_inside(database, text))) {
                continue;
            }
            let committed = loop {
                match self.attempt_inside("admin", "commitTransaction: 1, ") {
                    Some(reply) => break reply,
                    None => std::thread::sleep(RETRY_PAUSE),
                }
            };
            match whole(committed.as_ref(), "ok") {
                Some(1) => break,
                // The server was killed before the commit (`NoSuchTransaction`).
                _ => assert_eq!(whole(committed.as_ref(), "code"), Some(251), "{}", print(committed.as_ref())),
            }
        }
        self.told.transferred += 1;
    }

    fn attempt_inside(&mut self, database: &str, text: &str) -> Option<bunko_bson::DocumentBuf> {
        let (session, number) = (self.session(), self.transaction);
        let text = format!("{{{text}{session}, txnNumber: NumberLong({number}), autocommit: false}}");
        self.attempt(&message(1, MessageFlags::NONE, command(database, &text).as_ref()))
    }

    /// Sends a request once; `None` if no reply arrived, or if this reply is to be lost.
    fn attempt(&mut self, request: &[u8]) -> Option<bunko_bson::DocumentBuf> {
        let address = *self.place.address.lock().expect("not poisoned");
        let mut stream = TcpStream::connect_timeout(&address, REPLY_TIMEOUT).ok()?;
        stream.set_read_timeout(Some(REPLY_TIMEOUT)).ok()?;
        stream.write_all(request).ok()?;
        if self.random.one_in(3) {
            return None;
        }
        let mut frame = vec![0; HEADER_BYTES];
        stream.read_exact(&mut frame).ok()?;
        frame.resize(needed_bytes(&frame).expect("a length within limits"), 0);
        stream.read_exact(&mut frame[HEADER_BYTES..]).ok()?;
        Some(Message::parse(&frame).expect("a valid OP_MSG").body.to_owned())
    }

    fn work(mut self) -> Told {
        let own = self.number;
        for turn in 0.. {
            if self.place.is_over.load(Ordering::Relaxed) {
                return self.told;
            }
            let reply = self.do_once("test", "{update: 'sum', updates: [{q: {_id: 1}, u: {$inc: {n: 1}}}]}");
            assert_eq!(whole(reply.as_ref(), "nModified"), Some(1));
            self.told.increments += 1;
            let text = format!(
                "{{findAndModify: 'own', query: {{_id: {own}}}, update: {{$inc: {{n: 1}}}}, new: true, upsert: true}}"
            );
            let reply = self.do_once("test", &text);
            self.told.counted += 1;
            let value = reply.as_ref().get("value").and_then(ValueRef::as_document).expect("a document");
            assert_eq!(whole(value, "n"), Some(self.told.counted), "{}", print(reply.as_ref()));
            let documents: Vec<String> = (0..3).map(|i| format!("{{_id: '{own}-{turn}-{i}'}}")).collect();
            let reply = self.do_once("test", &format!("{{insert: 'rows', documents: [{}]}}", documents.join(", ")));
            assert_eq!(whole(reply.as_ref(), "n"), Some(3), "{}", print(reply.as_ref()));
            self.told.inserted += 3;
            let text = format!(
                "{{bulkWrite: 1, nsInfo: [{{ns: 'test.sum'}}, {{ns: 'test.rows'}}], ops: [\
                 {{update: 0, filter: {{_id: 1}}, updateMods: {{$inc: {{n: 1}}}}}}, \
                 {{insert: 1, document: {{_id: '{own}-{turn}-b'}}}}, \
                 {{delete: 1, filter: {{_id: '{own}-{turn}-0'}}}}, \
                 {{update: 1, filter: {{_id: '{own}-{turn}-u'}}, updateMods: {{$set: {{x: 1}}}}, upsert: true}}]}}"
            );
            let reply = self.do_once("admin", &text);
            for count in ["nInserted", "nDeleted", "nUpserted", "nModified"] {
                assert_eq!(whole(reply.as_ref(), count), Some(1), "{}", print(reply.as_ref()));
            }
            self.told.increments += 1;
            self.told.upserted += 1;
            self.transfer();
            self.place.turns.fetch_add(1, Ordering::Relaxed);
        }
        unreachable!("turns do not end")
    }
}

fn print(document: DocumentRef<'_>) -> String {
    shell::print(ValueRef::Document(document))
}

fn whole(document: DocumentRef<'_>, field: &str) -> Option<i64> {
    document.get(field).and_then(number::as_i64_exact)
}

fn count(peer: &mut Peer, collection: &str) -> i64 {
    whole(peer.run("test", &format!("{{count: '{collection}'}}")).as_ref(), "n").expect("a count")
}

fn survive(engine: &str) {
    let dbpath = temporary_dbpath();
    let mut server = start(engine, dbpath.path()).expect("the server starts");
    let mut peer = Peer::connect(server.address());
    assert_eq!(peer.text("test", "{insert: 'sum', documents: [{_id: 1, n: 0}]}"), "{n: 1, ok: 1.0}");
    for collection in ["from", "to"] {
        assert_eq!(peer.text("test", &format!("{{create: '{collection}'}}")), "{ok: 1.0}");
    }
    let place = Arc::new(Place {
        address: Mutex::new(server.address()),
        turns: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
    });
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (place, told) = (Arc::clone(&place), Told::default());
            let client = Client { number, transaction: 0, random: Random(u64::from(number)), place, told };
            std::thread::spawn(move || client.work())
        })
        .collect();
    let take_turns = |count: usize| {
        let enough = place.turns.load(Ordering::Relaxed) + count;
        wait_until("the clients take turns", || place.turns.load(Ordering::Relaxed) >= enough);
    };
    for kill in 0..KILLS {
        take_turns(TURNS + kill);
        server.kill();
        server = start(engine, dbpath.path()).expect("the server starts again");
        *place.address.lock().expect("not poisoned") = server.address();
    }
    take_turns(TURNS);
    place.is_over.store(true, Ordering::Relaxed);
    let told: Vec<Told> = clients.into_iter().map(|client| client.join().expect("no client fails")).collect();
    let total = |of: fn(&Told) -> i64| told.iter().map(of).sum::<i64>();
    let mut peer = Peer::connect(server.address());
    let reply = peer.text("test", "{find: 'sum'}");
    let expected = format!("{{_id: 1, n: {}}}", total(|told| told.increments));
    assert!(reply.contains(&expected), "{engine}: {reply}, and not {expected}");
    // Each turn deletes one inserted row, and adds one by an insert and one by an upsert.
    let rows = total(|told| told.inserted) + total(|told| told.upserted);
    assert_eq!(count(&mut peer, "rows"), rows, "{engine}");
    for (number, told) in told.iter().enumerate() {
        for (collection, amount) in [("from", -told.transferred), ("to", told.transferred)] {
            let reply = peer.text("test", &format!("{{find: '{collection}', filter: {{_id: {number}}}}}"));
            let expected = format!("{{_id: {number}, n: {amount}}}");
            assert!(told.transferred == 0 || reply.contains(&expected), "{engine}: {reply}, and not {expected}");
        }
    }
    let transferred = total(|told| told.transferred);
    assert!(transferred > 20, "{engine}: only {transferred} transactions");
    let retried: u64 = told.iter().map(|told| told.retried).sum();
    println!(
        "{engine}: {} increments, {rows} rows, {transferred} transactions, {retried} commands sent more than once",
        total(|told| told.increments)
    );
    assert!(retried > 20, "{engine}: only {retried} commands were sent more than once");
}

#[test]
fn a_write_that_is_sent_again_is_done_once() {
    durable_engines().into_iter().for_each(survive);
}
