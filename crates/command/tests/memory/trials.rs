//! Candidate plans that run against each other hold memory of their operation: a candidate that needs too much loses, and
//! the operation fails if all of them do.

use crate::server::Server;
use bunko_bson::{DocumentBuf, ValueRef, number};
use bunko_engines::{ENGINES, EngineOptions};
use bunko_errors::ErrorCode;
use bunko_operation::MemoryLimits;
use bunko_store::LogOptions;
use bunko_testkit::shell;

const DOCUMENTS: usize = 600;
/// Documents of one insert.
const BATCH: usize = 20;
const TEXT_BYTES: usize = 20_000;
/// Less than a third of all documents.
const OPERATION_BYTES_MAX: u64 = 4_000_000;

fn run(server: &mut Server, command: &str) -> DocumentBuf {
    let command = shell::parse_document(command).unwrap_or_else(|error| panic!("{command}: {error}"));
    server.run(1, "test", command.as_ref())
}

fn integer(document: &DocumentBuf, name: &str) -> Option<i64> {
    document.as_ref().get(name).and_then(number::as_i64_exact)
}

fn filled() -> Server {
    let limits = MemoryLimits { operation_bytes_max: OPERATION_BYTES_MAX, ..MemoryLimits::none() };
    let mut server = Server::start_within(&ENGINES[0], &EngineOptions::default(), LogOptions::default(), limits);
    let indexes = "{createIndexes: 'c', indexes: [{key: {a: 1}, name: 'a'}, {key: {b: 1}, name: 'b'}]}";
    let reply = run(&mut server, indexes);
    assert_eq!(integer(&reply, "ok"), Some(1), "{reply:?}");
    let text = "x".repeat(TEXT_BYTES);
    for first in (0..DOCUMENTS).step_by(BATCH) {
        let document = |number| format!("{{_id: {number}, a: {number}, b: {number}, c: {number}, text: '{text}'}}");
        let documents: Vec<_> = (first..first + BATCH).map(document).collect();
        let reply = run(&mut server, &format!("{{insert: 'c', documents: [{}]}}", documents.join(", ")));
        assert_eq!(integer(&reply, "n"), Some(BATCH as i64), "{reply:?}");
    }
    server
}

/// A find that both indexes serve.
fn find(sort: &str) -> String {
    format!("{{find: 'c', filter: {{a: {{$gte: 0}}, b: {{$gte: 0}}}}, sort: {sort}, batchSize: 1}}")
}

#[test]
fn a_candidate_that_sorts_more_than_memory_holds_loses() {
    let mut server = filled();
    for sort in ["{b: 1}", "{a: 1}", "{a: -1}"] {
        let reply = run(&mut server, &find(sort));
        assert!(reply.as_ref().get("cursor").is_some(), "{reply:?}");
        let explained = run(&mut server, &format!("{{explain: {}, verbosity: 'queryPlanner'}}", find(sort)));
        let planner = explained.as_ref().get("queryPlanner").and_then(ValueRef::as_document).expect("a plan");
        let rejected = planner.get("rejectedPlans").and_then(ValueRef::as_array).expect("rejected plans");
        assert_eq!(rejected.iter().count(), 1, "{planner:?}");
    }
}

#[test]
fn an_operation_fails_if_each_candidate_needs_too_much_memory() {
    let reply = run(&mut filled(), &find("{c: 1}"));
    assert_eq!(integer(&reply, "code"), Some(i64::from(ErrorCode::EXCEEDED_MEMORY_LIMIT.0)), "{reply:?}");
}
