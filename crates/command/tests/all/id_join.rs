//! `$lookup` by `_id` for most of a collection.

use crate::server::Server;
use bunko_bson::{DocumentBuf, ValueRef, number};
use bunko_engines::{ENGINES, EngineOptions};
use bunko_testkit::shell;
use std::fmt::Write;

/// Enough documents that lookups switch to a table of the collection.
const DOCUMENTS: usize = 3_000;

fn run(server: &mut Server, command: &str) -> DocumentBuf {
    server.run(1, "test", shell::parse_document(command).expect("a command").as_ref())
}

#[test]
fn each_document_is_joined_with_its_own_whether_one_by_one_or_by_a_table() {
    for engine in ENGINES {
        let mut server = Server::start(engine, &EngineOptions::default());
        for first in (0..DOCUMENTS).step_by(500) {
            // One in three joined documents is missing, and equal numbers have another type.
            let (mut inputs, mut joined) = (String::new(), String::new());
            for id in first..first + 500 {
                write!(inputs, "{{_id: {id}, other: {}}},", (id * 7) % DOCUMENTS).expect("a string");
                if id % 3 > 0 {
                    write!(joined, "{{_id: {id}.0, twice: {}}},", 2 * id).expect("a string");
                }
            }
            run(&mut server, &format!("{{insert: 'inputs', documents: [{inputs}]}}"));
            run(&mut server, &format!("{{insert: 'joined', documents: [{joined}]}}"));
        }
        let pipeline = "[{$lookup: {from: 'joined', localField: 'other', foreignField: '_id', as: 'j'}}, \
                        {$group: {_id: {$cond: [{$eq: [{$mod: ['$other', 3]}, 0]}, {$eq: ['$j', []]}, \
                        {$eq: [{$map: {input: '$j', in: '$$this.twice'}}, [{$multiply: ['$other', 2]}]]}]}, \
                        n: {$sum: 1}}}]";
        let reply = run(&mut server, &format!("{{aggregate: 'inputs', pipeline: {pipeline}, cursor: {{}}}}"));
        let cursor = reply.as_ref().get("cursor").and_then(ValueRef::as_document).expect("a cursor");
        let batch = cursor.get("firstBatch").and_then(ValueRef::as_array).expect("a batch");
        let groups: Vec<_> = batch.iter().filter_map(ValueRef::as_document).collect();
        assert_eq!(groups.len(), 1, "{}: {reply:?}", engine.name);
        assert!(matches!(groups[0].get("_id"), Some(ValueRef::Boolean(true))), "{}: {reply:?}", engine.name);
        assert_eq!(groups[0].get("n").and_then(number::as_i64_exact), Some(DOCUMENTS as i64), "{}", engine.name);
    }
}
