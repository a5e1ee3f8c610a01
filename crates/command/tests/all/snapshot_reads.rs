//! Reads of past states at a given time, on a set of one member.

use crate::server::Server;
use bunko_bson::{DocumentBuf, Timestamp, ValueRef, number};
use bunko_catalog::KEPT_STATES_MAX;
use bunko_engines::{ENGINES, EngineOptions};
use bunko_store::{LogOptions, Survival};
use bunko_testkit::shell;

struct Client(Server);

impl Client {
    /// Runs the test with each durable engine.
    fn each(mut test: impl FnMut(&mut Self)) {
        let is_durable =
            |entry: &&bunko_engines::Entry| (entry.kind)(&EngineOptions::default()).survival == Survival::Durable;
        for engine in ENGINES.iter().filter(is_durable) {
            let log = LogOptions { history_bytes_max: Some(128 << 20), ..LogOptions::default() };
            let mut client = Self(Server::start_as_member(engine, &EngineOptions::default(), log));
            client.run("{insert: 't', documents: [{_id: 1, n: 1}, {_id: 2, n: 2}]}");
            test(&mut client);
        }
    }

    fn run(&mut self, command: &str) -> DocumentBuf {
        let command = shell::parse_document(command).unwrap_or_else(|error| panic!("{command}: {error}"));
        let is_of_all = |name: &str| command.as_ref().get(name).is_some();
        let database = if ["setParameter", "commitTransaction"].into_iter().any(is_of_all) { "admin" } else { "test" };
        self.0.run(1, database, command.as_ref())
    }

    /// The code of the failure; 0 on success.
    fn code(&mut self, command: &str) -> i64 {
        let reply = self.run(command);
        reply.as_ref().get("code").and_then(number::as_i64_exact).unwrap_or(0)
    }

    /// The values of `n` that a command finds at a time, and the time in its reply.
    fn found(&mut self, command: &str, at: Option<Timestamp>) -> (Vec<i64>, Timestamp) {
        let at = at.map_or(String::new(), |at| format!(", atClusterTime: {}", text(at)));
        let reply = self.run(&format!("{{{command}, readConcern: {{level: 'snapshot'{at}}}}}"));
        let reply = reply.as_ref();
        let cursor = reply.get("cursor").and_then(ValueRef::as_document);
        let told = cursor.map_or(reply.get("atClusterTime"), |cursor| cursor.get("atClusterTime"));
        let Some(ValueRef::Timestamp(told)) = told else { panic!("{command}: {reply:?}") };
        let values = match cursor {
            None => reply.get("values"),
            Some(cursor) => cursor.get("firstBatch"),
        };
        (numbers(values), told)
    }

    /// The values of `n` in the next batch of a command.
    fn batch(&mut self, command: &str) -> Vec<i64> {
        let reply = self.run(command);
        let cursor = reply.as_ref().get("cursor").and_then(ValueRef::as_document);
        numbers(cursor.unwrap_or_else(|| panic!("{command}: {reply:?}")).get("nextBatch"))
    }
}

/// Numbers, or the values of `n` in documents, sorted.
fn numbers(values: Option<ValueRef<'_>>) -> Vec<i64> {
    let number_of = |value: ValueRef<'_>| {
        let value = value.as_document().and_then(|document| document.get("n")).unwrap_or(value);
        number::as_i64_exact(value).expect("a number")
    };
    let mut found: Vec<_> = values.and_then(ValueRef::as_array).expect("values").iter().map(number_of).collect();
    found.sort_unstable();
    found
}

fn cursor_id(reply: &DocumentBuf) -> i64 {
    let cursor = reply.as_ref().get("cursor").and_then(ValueRef::as_document);
    cursor.and_then(|cursor| cursor.get("id")).and_then(number::as_i64_exact).expect("a cursor")
}

fn text(at: Timestamp) -> String {
    format!("Timestamp({}, {})", at.seconds, at.increment)
}

fn operation_time(reply: &DocumentBuf) -> Timestamp {
    match reply.as_ref().get("operationTime") {
        Some(ValueRef::Timestamp(at)) => at,
        other => panic!("{other:?}"),
    }
}

#[test]
fn all_reads_of_a_time_see_one_state() {
    const READS: [&str; 5] = [
        "find: 't'",
        "find: 't', sort: {n: -1}",
        "aggregate: 't', pipeline: [{$match: {n: {$gt: 0}}}], cursor: {}",
        "distinct: 't', key: 'n'",
        "aggregate: 'one', pipeline: [{$lookup: {from: 't', pipeline: [], as: 'all'}}, {$unwind: '$all'}, \
         {$replaceWith: '$all'}], cursor: {}",
    ];
    Client::each(|client| {
        client.run("{insert: 'one', documents: [{_id: 1}]}");
        let (before, at) = client.found(READS[0], None);
        assert_eq!(before, [1, 2]);
        client.run("{insert: 't', documents: [{_id: 3, n: 3}]}");
        client.run("{update: 't', updates: [{q: {_id: 1}, u: {$set: {n: 10}}}]}");
        let deleted = client.run("{delete: 't', deletes: [{q: {_id: 2}, limit: 1}]}");
        for read in READS {
            assert_eq!(client.found(read, Some(at)), (vec![1, 2], at), "{read}");
            // Nothing was written after that time.
            let now = operation_time(&deleted);
            assert_eq!(client.found(read, Some(now)), (vec![3, 10], now), "{read}");
        }
        assert_eq!(client.found("find: 't', filter: {_id: 1}", Some(at)).0, [1]);
        assert_eq!(client.found("aggregate: 't', pipeline: [{$count: 'n'}], cursor: {}", Some(at)).0, [2]);
        assert_eq!(client.found("find: 't'", None).0, [3, 10], "who names no time reads the present");
    });
}

#[test]
fn cursors_keep_their_state() {
    const OPENED: [&str; 5] = [
        "find: 't', batchSize: 0",
        "find: 't', batchSize: 0, sort: {n: -1}",
        "aggregate: 't', pipeline: [{$match: {n: {$gt: 0}}}], cursor: {batchSize: 0}",
        "aggregate: 't', pipeline: [{$group: {_id: '$n', n: {$first: '$n'}}}], cursor: {batchSize: 0}",
        "aggregate: 'one', pipeline: [{$lookup: {from: 't', pipeline: [], as: 'all'}}, {$unwind: '$all'}, \
         {$replaceWith: '$all'}], cursor: {batchSize: 0}",
    ];
    Client::each(|client| {
        client.run("{insert: 'one', documents: [{_id: 1}]}");
        let (_, at) = client.found("find: 't'", None);
        let state = format!("level: 'snapshot', atClusterTime: {}", text(at));
        client.run("{update: 't', updates: [{q: {_id: 1}, u: {$set: {n: 10}}}]}");
        let ids: Vec<_> = OPENED
            .iter()
            .map(|command| cursor_id(&client.run(&format!("{{{command}, readConcern: {{{state}}}}}"))))
            .collect();
        client.run("{delete: 't', deletes: [{q: {}, limit: 0}]}");
        // Drivers repeat the read concern of a snapshot session. Whatever it is, the cursor keeps its own.
        let said = ["", &state, "level: 'snapshot'", "level: 'majority'", "level: 'local'"];
        for ((id, command), said) in ids.into_iter().zip(OPENED).zip(said) {
            let collection = if command.contains("'one'") { "one" } else { "t" };
            let more = format!("getMore: NumberLong('{id}'), collection: '{collection}'");
            assert_eq!(client.batch(&format!("{{{more}, readConcern: {{{said}}}}}")), [1, 2], "{command}");
        }
        let more = format!("getMore: NumberLong('1'), collection: 't', readConcern: {{atClusterTime: {}}}", text(at));
        assert_eq!(client.code(&format!("{{{more}}}")), 72, "a time without the level");
        assert_eq!(client.code("{getMore: NumberLong('1'), collection: 't', readConcern: {level: 'snap'}}"), 2);
    });
}

#[test]
fn a_transaction_reads_the_state_of_its_time() {
    const SESSION: &str = "lsid: {id: UUID('00000000-0000-4000-8000-000000000001')}, autocommit: false";
    Client::each(|client| {
        let (_, at) = client.found("find: 't'", None);
        client.run("{update: 't', updates: [{q: {_id: 1}, u: {$set: {n: 10}}}]}");
        let begun = client.run(&format!(
            "{{find: 't', filter: {{n: 1}}, {SESSION}, txnNumber: NumberLong(1), startTransaction: true, \
             readConcern: {{level: 'snapshot', atClusterTime: {}}}}}",
            text(at)
        ));
        let batch =
            begun.as_ref().get("cursor").and_then(ValueRef::as_document).and_then(|cursor| cursor.get("firstBatch"));
        assert_eq!(batch.and_then(ValueRef::as_array).map(|batch| batch.iter().count()), Some(1), "{begun:?}");
        // A document that was changed after that time is a conflict.
        let update = "updates: [{q: {_id: 1}, u: {$inc: {n: 1}}}]";
        assert_eq!(client.code(&format!("{{update: 't', {update}, {SESSION}, txnNumber: NumberLong(1)}}")), 112);
    });
}

#[test]
fn a_state_that_is_not_there_is_refused() {
    Client::each(|client| {
        let find =
            |at: Timestamp| format!("{{find: 't', readConcern: {{level: 'snapshot', atClusterTime: {}}}}}", text(at));
        let (_, at) = client.found("find: 't'", None);
        let written = operation_time(&client.run("{insert: 't', documents: [{_id: 3, n: 3}]}"));
        let later = operation_time(&client.run("{insert: 't', documents: [{_id: 4, n: 4}]}"));
        assert_eq!(client.code(&find(written)), 246, "nobody asked for a snapshot then");
        assert_eq!(client.code(&find(Timestamp { seconds: at.seconds - 400, ..at })), 239);
        assert_eq!(client.code(&find(Timestamp { seconds: later.seconds + 100, ..later })), 72, "it is to come");
        assert_eq!(client.code(&find(Timestamp { seconds: 0, increment: 0 })), 72);
        // A collection whose definition changed after that time cannot be read at that time.
        let state = format!("readConcern: {{level: 'snapshot', atClusterTime: {}}}", text(at));
        client.run("{createIndexes: 't', indexes: [{key: {n: 1}, name: 'n'}]}");
        assert_eq!(client.code(&find(at)), 246);
        client.run("{drop: 't'}");
        assert_eq!(client.code(&find(at)), 246);
        assert_eq!(client.code(&format!("{{distinct: 't', key: 'n', {state}}}")), 246);
        assert_eq!(client.code(&format!("{{aggregate: 't', pipeline: [], cursor: {{}}, {state}}}")), 246);
        assert_eq!(client.found("find: 't'", None).0, Vec::<i64>::new());
        assert_eq!(client.found("find: 'other'", Some(at)).0, Vec::<i64>::new(), "it was not there then either");
        client.run("{create: 'capped', capped: true, size: 4096}");
        assert_eq!(client.code("{find: 'capped', readConcern: {level: 'snapshot'}}"), 246);
        for command in [
            "{count: 't', readConcern: {level: 'snapshot'}}",
            "{find: 't', readConcern: {atClusterTime: Timestamp(9, 9)}}",
        ] {
            assert_eq!(client.code(command), 72, "{command}");
        }
    });
}

#[test]
fn states_go_with_their_window_and_the_oldest_where_there_are_too_many() {
    Client::each(|client| {
        let (_, at) = client.found("find: 't'", None);
        let find = format!("{{find: 't', readConcern: {{level: 'snapshot', atClusterTime: {}}}}}", text(at));
        client.run("{insert: 't', documents: [{_id: 3, n: 3}]}");
        assert_eq!(client.code(&find), 0);
        let past = client.0.service.catalog.past_states();
        // The term began a second after the time on the clock, and the window counts by the clock.
        let given_s = client.0.service.catalog.store().clock().now_ms() / 1000;
        assert_eq!(u64::from(at.seconds), given_s + 1);
        past.forget_old(given_s + 300);
        assert_eq!(past.kept(), 1);
        past.forget_old(given_s + 301);
        assert_eq!(past.kept(), 0);
        assert_eq!(client.code(&find), 246);
        assert_eq!(client.code("{setParameter: 1, minSnapshotHistoryWindowInSeconds: -1}"), 2);
        assert_eq!(client.code("{setParameter: 1, minSnapshotHistoryWindowInSeconds: 60}"), 0);
        assert_eq!(client.0.service.catalog.past_states().window_s(), 60);
        for number in 0..KEPT_STATES_MAX + 5 {
            client.run(&format!("{{update: 't', updates: [{{q: {{_id: 1}}, u: {{$set: {{n: {number}}}}}}}]}}"));
            client.found("find: 't', filter: {_id: 1}", None);
        }
        assert_eq!(client.0.service.catalog.past_states().kept(), KEPT_STATES_MAX);
    });
}
