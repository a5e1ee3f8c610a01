//! Idle cursors retain snapshots. The oldest cursors are closed when that takes too much room.

use crate::server::Server;
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef, number};
use bunko_engines::{ENGINES, EngineOptions, Entry};
use bunko_errors::ErrorCode;
use bunko_testkit::shell;

/// All rounds write 96 MiB, which is one and a half segments of the log, so that `lsm` has a full segment whatever else
/// is in it.
const ROUNDS: i64 = 12;
const PAD_BYTES: usize = 8 << 20;

struct Client(Server);

/// A cursor that has returned the first of two documents, and the round of the other document when the cursor was
/// opened.
struct Waiting {
    id: i64,
    round: i64,
}

impl Client {
    fn start(engine: &'static Entry, memory_limit_bytes: u64) -> Self {
        let mut client = Self(Server::start(engine, &EngineOptions { memory_limit_bytes, ..EngineOptions::default() }));
        client.run_well("{insert: 't', documents: [{_id: 0}, {_id: 1, round: 0}]}");
        client
    }

    fn run(&mut self, command: &str) -> DocumentBuf {
        let command = shell::parse_document(command).unwrap_or_else(|error| panic!("{command}: {error}"));
        let is_of_all = |name: &str| command.as_ref().get(name).is_some();
        let database = if ["setParameter", "fsync"].into_iter().any(is_of_all) { "admin" } else { "test" };
        self.0.run(1, database, command.as_ref())
    }

    fn run_well(&mut self, command: &str) -> DocumentBuf {
        let reply = self.run(command);
        assert_eq!(integer(&reply, &["ok"]), 1, "{reply:?}");
        assert!(reply.as_ref().get("writeErrors").is_none(), "{reply:?}");
        reply
    }

    fn replace(&mut self, round: i64, pad: &str) {
        let update = DocumentBuf::new()
            .with("q", &DocumentBuf::new().with("_id", 1))
            .with("u", &DocumentBuf::new().with("round", round).with("pad", pad));
        let updates: ArrayBuf = [&update].into_iter().collect();
        let reply = self.0.run(1, "test", DocumentBuf::new().with("update", "t").with("updates", &updates).as_ref());
        assert_eq!(integer(&reply, &["nModified"]), 1, "{reply:?}");
    }

    fn open(&mut self, round: i64) -> Waiting {
        let reply = self.run_well("{find: 't', batchSize: 1, projection: {round: 1}, noCursorTimeout: true}");
        Waiting { id: integer(&reply, &["cursor", "id"]), round }
    }

    /// Whether a cursor still exists. If so, it returns the document as it was; if not, the error gives the reason.
    fn goes_on(&mut self, cursor: &Waiting) -> bool {
        let reply = self.run(&format!("{{getMore: NumberLong('{}'), collection: 't'}}", cursor.id));
        if integer(&reply, &["ok"]) == 1 {
            assert_eq!(integer(&reply, &["cursor", "nextBatch", "0", "round"]), cursor.round);
            return true;
        }
        assert_eq!(integer(&reply, &["code"]), i64::from(ErrorCode::CURSOR_NOT_FOUND.0), "{reply:?}");
        assert!(format!("{reply:?}").contains("idleCursorKeepMaxMB"), "{reply:?}");
        false
    }

    fn kept_bytes(&self) -> u64 {
        let kept = self.0.service.catalog.store().kept_for_snapshots();
        kept.into_iter().map(|(_, kept)| kept.bytes).max().unwrap_or(0)
    }

    fn closed_for_room(&mut self) -> i64 {
        integer(&self.run_well("{serverStatus: 1}"), &["bunko", "cursorsClosedForRoom"])
    }
}

fn integer(document: &DocumentBuf, path: &[&str]) -> i64 {
    let (first, rest) = path.split_first().expect("a path");
    let found = rest.iter().fold(document.as_ref().get(first), |found, name| match found? {
        ValueRef::Array(array) => array.iter().nth(name.parse().ok()?),
        found => found.as_document()?.get(name),
    });
    found.and_then(number::as_i64_exact).unwrap_or_else(|| panic!("no {path:?} in {document:?}"))
}

#[test]
fn the_oldest_idle_cursors_go_where_all_of_them_keep_too_much() {
    let pad = "p".repeat(PAD_BYTES);
    for engine in ENGINES {
        eprintln!("server on {}", engine.name);
        let mut client = Client::start(engine, 1 << 30);
        let mut cursors = Vec::new();
        let somebody_elses = client.0.service.catalog.store().snapshot();
        for round in 1..=ROUNDS {
            client.replace(round, &pad);
            client.run_well("{fsync: 1}");
            cursors.push(client.open(round));
        }
        client.replace(ROUNDS + 1, &pad);
        client.run_well("{fsync: 1}");
        let kept_bytes = client.kept_bytes();
        assert!(kept_bytes > 40 << 20, "{kept_bytes} bytes are kept for {ROUNDS} cursors");
        // The engines' own limits are higher.
        client.0.service.close_cursors_that_keep_too_much();
        assert_eq!(client.closed_for_room(), 0);
        client.run_well("{setParameter: 1, idleCursorKeepMaxMB: 20}");
        if engine.name == "lsm" {
            // Another snapshot retains all of that as well.
            client.0.service.close_cursors_that_keep_too_much();
            assert_eq!(client.closed_for_room(), 0);
        }
        drop(somebody_elses);
        client.0.service.close_cursors_that_keep_too_much();
        assert!(client.kept_bytes() <= 20 << 20, "{} bytes are kept", client.kept_bytes());
        let go_on: Vec<bool> = cursors.iter().map(|cursor| client.goes_on(cursor)).collect();
        let gone = go_on.iter().filter(|goes_on| !**goes_on).count();
        assert!(go_on.is_sorted() && gone > 0 && gone < cursors.len(), "{go_on:?}");
        assert_eq!(client.closed_for_room(), gone as i64);
    }
}

#[test]
fn memory_kept_for_idle_cursors_fails_no_others_writes() {
    let engine = bunko_engines::find("memory").expect("an engine");
    let mut client = Client::start(engine, 16 << 20);
    let pad = "p".repeat(1 << 20);
    let mut cursors = Vec::new();
    for round in 1..=50 {
        client.replace(round, &pad);
        cursors.push(client.open(round));
        client.0.service.close_cursors_that_keep_too_much();
    }
    let go_on: Vec<bool> = cursors.iter().map(|cursor| client.goes_on(cursor)).collect();
    assert!(go_on.is_sorted() && go_on.contains(&true), "{go_on:?}");
}

#[test]
fn one_client_has_only_so_many_cursors() {
    let mut client = Client::start(&ENGINES[0], 1 << 30);
    let find = shell::parse_document("{find: 't', batchSize: 1}").expect("a command");
    let mut refused = 0;
    for opened in 0..25_010 {
        let reply = client.0.run(1 + opened % 8, "test", find.as_ref());
        refused += i64::from(reply.as_ref().get("errmsg").is_some());
        if opened % 1000 == 0 {
            client.replace(i64::from(opened), "");
        }
    }
    assert_eq!(refused, 10);
    assert_eq!(integer(&client.run_well("{serverStatus: 1}"), &["metrics", "cursor", "open", "total"]), 25_000);
}
