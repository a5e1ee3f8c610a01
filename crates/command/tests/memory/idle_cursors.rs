//! Waiting cursors hold no more than their share of memory: the others are read ahead to disk, or ended.

use crate::server::{NOW_MS, Server};
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, ValueRef, number};
use bunko_engines::{ENGINES, EngineOptions};
use bunko_errors::ErrorCode;
use bunko_operation::{MemoryLimits, Purpose, ServerMemory, StageLimits};
use bunko_scratch::ScratchDirectory;
use bunko_store::{Clock, StoreOptions};
use bunko_testkit::patience::wait_until;
use bunko_testkit::shell;
use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;

const DOCUMENTS: i32 = 400;
const PAD_BYTES: usize = 4000;
/// A budget in bytes: all documents fit into it, but exceed the share of idle cursors.
const BUDGET_BYTES: u64 = 5600 * 1024;

struct Client {
    server: Server,
    memory: Arc<ServerMemory>,
    _scratch: tempfile::TempDir,
}

/// All documents of a cursor, and the code of the failure that ended it, if any.
#[derive(Debug, PartialEq)]
struct Shown {
    documents: Vec<DocumentBuf>,
    code: Option<i64>,
}

impl Client {
    fn start(budget_bytes: u64) -> Self {
        Self::start_by(budget_bytes, Clock::dated(|| NOW_MS))
    }

    fn start_by(budget_bytes: u64, clock: Clock) -> Self {
        let scratch = tempfile::tempdir().expect("a directory");
        let space = ScratchDirectory::open(&scratch.path().join("scratch")).expect("a directory").leaving(0);
        let memory = ServerMemory::new(budget_bytes);
        let stages = StageLimits::in_memory().with_scratch(Some(Arc::new(space)));
        let limits = MemoryLimits { server: Arc::clone(&memory), stages, ..MemoryLimits::none() };
        let store = StoreOptions { clock, ..StoreOptions::at_rest() };
        let server = Server::start_over(store, &ENGINES[0], &EngineOptions::default(), limits);
        let mut client = Self { server, memory, _scratch: scratch };
        let pad = "p".repeat(PAD_BYTES);
        for part in 0..4 {
            let documents: ArrayBuf = (0..DOCUMENTS / 4)
                .map(|number| {
                    let id = part * DOCUMENTS / 4 + number;
                    let document = DocumentBuf::new().with("_id", id).with("g", id % 7).with("n", (id * 31) % 101);
                    document.with("t", &[id % 3, id % 5].into_iter().collect::<ArrayBuf>()).with("pad", pad.as_str())
                })
                .fold(ArrayBuf::new(), |mut all, document| {
                    all.push(&document);
                    all
                });
            let insert = DocumentBuf::new().with("insert", "c").with("documents", &documents);
            assert_eq!(integer(&client.server.run(1, "test", insert.as_ref()), "n"), Some(i64::from(DOCUMENTS / 4)));
        }
        client
    }

    fn run(&mut self, command: &str) -> DocumentBuf {
        let command = shell::parse_document(command).unwrap_or_else(|error| panic!("{command}: {error}"));
        self.server.run(1, "test", command.as_ref())
    }

    /// Opens a cursor with a small first batch. Returns its id, or 0 if there is no cursor.
    fn open(&mut self, command: &str) -> (i64, Shown) {
        let reply = self.run(command);
        (cursor_id(&reply), shown(&reply))
    }

    fn get_more(&mut self, id: i64) -> DocumentBuf {
        self.run(&format!("{{getMore: NumberLong('{id}'), collection: 'c', batchSize: 60}}"))
    }

    /// All results of a command. `at_rest` is called when its cursor waits for the first time.
    fn all(&mut self, command: &str, at_rest: impl FnOnce(&Self)) -> Shown {
        let (mut id, mut all) = self.open(command);
        at_rest(self);
        while id != 0 {
            let reply = self.get_more(id);
            let Shown { documents, code } = shown(&reply);
            all.documents.extend(documents);
            all.code = code;
            id = cursor_id(&reply);
        }
        all
    }
}

fn integer(document: &DocumentBuf, name: &str) -> Option<i64> {
    document.as_ref().get(name).and_then(number::as_i64_exact)
}

fn cursor(reply: &DocumentBuf) -> Option<DocumentBuf> {
    reply.as_ref().get("cursor").and_then(ValueRef::as_document).map(DocumentRef::to_owned)
}

fn cursor_id(reply: &DocumentBuf) -> i64 {
    cursor(reply).and_then(|cursor| integer(&cursor, "id")).unwrap_or(0)
}

fn shown(reply: &DocumentBuf) -> Shown {
    let cursor = cursor(reply).unwrap_or_default();
    let batch = cursor.as_ref().get("firstBatch").or(cursor.as_ref().get("nextBatch")).and_then(ValueRef::as_array);
    let documents = batch.into_iter().flat_map(ArrayRef::iter);
    let documents = documents.filter_map(|document| document.as_document().map(DocumentRef::to_owned));
    Shown { documents: documents.collect(), code: integer(reply, "code") }
}

/// Commands whose cursors hold most of their result, or of the data that it is computed from.
const COMMANDS: &[&str] = &[
    "{find: 'c', sort: {n: 1, _id: -1}, batchSize: 3}",
    "{aggregate: 'c', pipeline: [{$sort: {n: 1, _id: 1}}], cursor: {batchSize: 3}}",
    "{aggregate: 'c', pipeline: [{$sort: {n: -1, _id: 1}}, {$limit: 300}, {$project: {n: 1, pad: 1}}], cursor: {batchSize: 0}}",
    "{aggregate: 'c', pipeline: [{$sort: {_id: 1}}, {$group: {_id: '$_id', p: {$first: '$pad'}}}, {$sort: {_id: 1}}], \
     cursor: {batchSize: 3}}",
    "{aggregate: 'c', pipeline: [{$bucketAuto: {groupBy: '$_id', buckets: 30, output: {p: {$first: '$pad'}}}}], \
     cursor: {batchSize: 1}}",
    "{aggregate: 'c', pipeline: [{$setWindowFields: {partitionBy: '$g', sortBy: {_id: 1}, output: {s: {$sum: '$n', window: \
     {documents: [-2, 2]}}}}}], cursor: {batchSize: 3}}",
    "{aggregate: 'c', pipeline: [{$facet: {a: [{$limit: 100}], b: [{$count: 'n'}]}}, {$unwind: '$a'}], cursor: {batchSize: 1}}",
    "{aggregate: 'c', pipeline: [{$limit: 40}, {$lookup: {from: 'c', pipeline: [{$match: {g: 3}}], as: 'l'}}, {$unwind: '$l'}, \
     {$limit: 500}, {$project: {l: {_id: 1, pad: 1}}}], cursor: {batchSize: 3}}",
    "{aggregate: 'c', pipeline: [{$sort: {n: 1, _id: 1}}, {$unionWith: 'c'}], cursor: {batchSize: 3}}",
    // The cursor fails after some of its documents.
    "{aggregate: 'c', pipeline: [{$sort: {n: 1, _id: 1}}, {$set: {q: {$divide: [1, {$subtract: ['$n', 70]}]}}}], \
     cursor: {batchSize: 3}}",
];

#[test]
fn a_cursor_that_was_read_ahead_shows_the_same() {
    let (mut plain, mut short) = (Client::start(u64::MAX), Client::start(BUDGET_BYTES));
    for command in COMMANDS {
        let expected = plain.all(command, |_| {});
        let found = short.all(command, |client| {
            let held = client.memory.idle();
            assert!(held <= client.memory.idle_max(), "{held} bytes are held: {command}");
        });
        let (count, code) = (found.documents.len(), found.code);
        assert!(expected == found, "{command}: {count} documents, code {code:?}, not {}", expected.documents.len());
    }
    let cursors = &short.server.service.cursors;
    assert_eq!(cursors.ended_for_memory(), 0);
    assert!(cursors.read_ahead() > COMMANDS.len() as u64 / 2, "{} cursors were read ahead", cursors.read_ahead());
    assert_eq!((short.memory.idle(), short.memory.held()), (0, 0), "all of it was given back");
}

#[test]
fn a_cursor_that_was_read_ahead_ends_with_its_collection() {
    for budget in [u64::MAX, BUDGET_BYTES] {
        let mut client = Client::start(budget);
        let (id, _) = client.open(COMMANDS[0]);
        client.run("{drop: 'c'}");
        assert_eq!(integer(&client.get_more(id), "code"), Some(i64::from(ErrorCode::QUERY_PLAN_KILLED.0)));
    }
}

#[test]
fn operations_that_begin_are_not_refused_for_idle_cursors() {
    let mut client = Client::start(BUDGET_BYTES);
    let sorted = "{find: 'c', sort: {n: 1}, batchSize: 1}";
    let cursors: Vec<i64> = (0..12).map(|_| client.open(sorted).0).collect();
    let all = client.all("{find: 'c', sort: {n: -1, _id: 1}, batchSize: 10}", |_| {});
    assert_eq!((all.documents.len(), all.code), (DOCUMENTS as usize, None));
    for id in cursors {
        assert_eq!(shown(&client.get_more(id)).documents.len(), 60);
    }
}

#[test]
fn without_disk_the_cursor_that_holds_most_is_ended() {
    let mut client = Client::start(BUDGET_BYTES);
    let (small, _) =
        client.open("{find: 'c', filter: {_id: {$lt: 40}}, sort: {n: 1}, batchSize: 1, allowDiskUse: false}");
    let (large, _) = client.open("{find: 'c', sort: {n: 1}, batchSize: 1, allowDiskUse: false}");
    let refused = client.get_more(large);
    assert_eq!(integer(&refused, "code"), Some(i64::from(ErrorCode::EXCEEDED_MEMORY_LIMIT.0)), "{refused:?}");
    assert_eq!(client.server.service.cursors.ended_for_memory(), 1);
    assert_eq!(shown(&client.get_more(small)).documents.len(), 39);
}

#[test]
fn a_batch_that_is_refused_for_memory_leaves_its_cursor() {
    let clock = Clock::standing(NOW_MS);
    let mut client = Client::start_by(8 * BUDGET_BYTES, clock.clone());
    let (id, _) = client.open(COMMANDS[0]);
    let others = client.memory.count(8 * BUDGET_BYTES, Purpose::Work);
    let memory = Arc::clone(&client.memory);
    let refused = std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_until("it waits for memory", || memory.waiting() > 0);
            // Longer than it waits.
            clock.advance(Duration::from_mins(2));
        });
        client.get_more(id)
    });
    assert_eq!(integer(&refused, "code"), Some(i64::from(ErrorCode::EXCEEDED_MEMORY_LIMIT.0)), "{refused:?}");
    drop(others);
    assert_eq!(shown(&client.get_more(id)).documents.len(), 60);
}

/// Stages that keep the order or create one, so that results can be compared.
fn stage() -> impl Strategy<Value = String> {
    prop_oneof![
        (-1..=1_i32).prop_map(|sign| format!("{{$sort: {{n: {}, _id: 1}}}}", if sign < 0 { -1 } else { 1 })),
        (1..DOCUMENTS).prop_map(|count| format!("{{$limit: {count}}}")),
        (0..50).prop_map(|count| format!("{{$skip: {count}}}")),
        (0..7).prop_map(|group| format!("{{$match: {{g: {{$ne: {group}}}}}}}")),
        Just("{$unwind: '$t'}".to_owned()),
        Just("{$set: {g: {$add: ['$g', 1]}}}".to_owned()),
        Just("{$setWindowFields: {sortBy: {_id: 1, n: 1}, output: {r: {$documentNumber: {}}}}}".to_owned()),
        (60..100).prop_map(|zero| format!("{{$set: {{q: {{$divide: [1, {{$subtract: ['$n', {zero}]}}]}}}}}}")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_pipelines_show_the_same(stages in proptest::collection::vec(stage(), 1..4), size in 0..40) {
        let pipeline = format!("{{$sort: {{_id: 1}}}}, {}", stages.join(", "));
        let command = format!("{{aggregate: 'c', pipeline: [{pipeline}], cursor: {{batchSize: {size}}}}}");
        let (mut plain, mut short) = (Client::start(u64::MAX), Client::start(BUDGET_BYTES));
        let (expected, found) = (plain.all(&command, |_| {}), short.all(&command, |_| {}));
        // Some pipelines need more than the budget while they work.
        let refused = Some(i64::from(ErrorCode::EXCEEDED_MEMORY_LIMIT.0));
        prop_assume!(found.code != refused || short.server.service.cursors.ended_for_memory() > 0);
        prop_assert!(expected == found, "{}: {:?} {}, not {:?} {}", command, found.code, found.documents.len(),
            expected.code, expected.documents.len());
    }
}
