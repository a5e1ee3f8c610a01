//! An in-memory engine at its limit: only the writes fail, and the server goes on.

use crate::server::Server;
use bunko_bson::{ArrayRef, DocumentBuf, ValueRef, number};
use bunko_engines::{ENGINES, EngineOptions};
use bunko_errors::ErrorCode;
use bunko_testkit::patience::wait_until;
use bunko_testkit::shell;

/// Room for a few hundred documents.
const LIMIT_BYTES: u64 = 512 << 10;
const PAD_BYTES: usize = 1000;

struct Client(Server);

impl Client {
    fn run(&mut self, command: &str) -> DocumentBuf {
        let command = shell::parse_document(command).unwrap_or_else(|error| panic!("{command}: {error}"));
        self.0.run(1, "test", command.as_ref())
    }

    fn run_well(&mut self, command: &str) -> DocumentBuf {
        let reply = self.run(command);
        assert_eq!(integer(&reply, "ok"), 1, "{reply:?}");
        assert!(reply.as_ref().get("writeErrors").is_none(), "{reply:?}");
        reply
    }

    fn count(&mut self) -> i64 {
        integer(&self.run_well("{count: 't'}"), "n")
    }

    /// Waits until the background work has freed space of deleted or dropped data.
    fn wait_for_room(&mut self, bytes: usize) {
        let engine = self.0.service.catalog.store().engine("memory").expect("an engine");
        wait_until("there is room again", || engine.size_bytes() + bytes as u64 <= LIMIT_BYTES);
    }

    fn assert_valid(&mut self, documents: i64) {
        let validation = self.run_well("{validate: 't'}");
        assert!(matches!(validation.as_ref().get("valid"), Some(ValueRef::Boolean(true))), "{validation:?}");
        assert_eq!(integer(&validation, "nrecords"), documents);
        assert_eq!(self.count(), documents);
    }
}

fn integer(document: &DocumentBuf, name: &str) -> i64 {
    document.as_ref().get(name).and_then(number::as_i64_exact).unwrap_or_else(|| panic!("no {name} in {document:?}"))
}

fn insert(ids: std::ops::Range<i64>, order: &str) -> String {
    let pad = "p".repeat(PAD_BYTES);
    let documents: Vec<_> = ids.map(|id| format!("{{_id: {id}, n: {id}, pad: '{pad}'}}")).collect();
    format!("{{insert: 't', documents: [{}], ordered: {order}}}", documents.join(", "))
}

/// The index of each write error, whose code must be that of a full engine.
fn write_errors(reply: &DocumentBuf) -> Vec<i64> {
    assert_eq!(integer(reply, "ok"), 1, "{reply:?}");
    let errors = reply.as_ref().get("writeErrors").and_then(ValueRef::as_array).unwrap_or(ArrayRef::EMPTY);
    errors
        .iter()
        .map(|error| {
            let error = error.as_document().expect("a document").to_owned();
            assert_eq!(integer(&error, "code"), i64::from(ErrorCode::EXCEEDED_MEMORY_LIMIT.0), "{error:?}");
            integer(&error, "index")
        })
        .collect()
}

#[test]
fn writes_beyond_the_limit_fail_and_nothing_else_does() {
    let options = EngineOptions { memory_limit_bytes: LIMIT_BYTES, ..EngineOptions::default() };
    for own in ENGINES {
        eprintln!("server on {}", own.name);
        let mut client = Client(Server::start(own, &options));
        client.run_well("{create: 't', storageEngine: {inMemory: {}}}");
        client.run_well("{createIndexes: 't', indexes: [{key: {n: 1}, name: 'n_1', unique: true}]}");
        // An ordered insert stores the documents before the first that has no room.
        let reply = client.run(&insert(0..2000, "true"));
        let stored = integer(&reply, "n");
        assert!((100..1000).contains(&stored), "{stored} documents of {PAD_BYTES} bytes");
        assert_eq!(write_errors(&reply), [stored]);
        client.assert_valid(stored);
        // An unordered insert fails for each document.
        let reply = client.run(&insert(3000..3010, "false"));
        assert_eq!((integer(&reply, "n"), write_errors(&reply)), (0, (0..10).collect()));

        let pad = "p".repeat(2 * PAD_BYTES);
        for statement in [
            format!("{{q: {{_id: 1}}, u: {{$set: {{pad: '{pad}'}}}}}}"),
            format!("{{q: {{_id: -1}}, u: {{$set: {{pad: '{pad}'}}}}, upsert: true}}"),
        ] {
            let reply = client.run(&format!("{{update: 't', updates: [{statement}]}}"));
            assert_eq!(write_errors(&reply), [0], "{statement}");
        }
        for command in [
            "{createIndexes: 't', indexes: [{key: {pad: 1}, name: 'pad_1'}]}".to_owned(),
            format!("{{findAndModify: 't', query: {{_id: 1}}, update: {{$set: {{pad: '{pad}'}}}}}}"),
        ] {
            let reply = client.run(&command);
            assert_eq!(integer(&reply, "code"), i64::from(ErrorCode::EXCEEDED_MEMORY_LIMIT.0), "{reply:?}");
        }
        client.assert_valid(stored);
        let indexes = client.run_well("{listIndexes: 't'}");
        assert!(!format!("{indexes:?}").contains("pad_1"), "the build left nothing: {indexes:?}");

        // Deleting makes room for new documents.
        client.run_well("{delete: 't', deletes: [{q: {n: {$lt: 50}}, limit: 0}]}");
        client.wait_for_room(50 * PAD_BYTES);
        client.run_well(&insert(5000..5030, "true"));
        client.assert_valid(stored - 20);
        client.run_well("{drop: 't'}");
        client.wait_for_room(200 * PAD_BYTES);
        client.run_well("{create: 't', storageEngine: {memory: {}}}");
        client.run_well(&insert(0..100, "true"));
        client.assert_valid(100);
    }
}
