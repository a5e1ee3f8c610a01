//! `$lookup` by `_id` or by an index for most of a collection.

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

/// Several documents have the same value, some have an array, and some have no value. Without an index, a join uses
/// another table.
#[test]
fn a_join_by_an_index_gives_the_same_documents_in_the_same_order_as_one_without() {
    for engine in ENGINES {
        let mut server = Server::start(engine, &EngineOptions::default());
        for (key, options) in [("{k: 1}", ""), ("{'in.k': -1}", ", sparse: true")] {
            run(
                &mut server,
                &format!("{{createIndexes: 'indexed', indexes: [{{key: {key}, name: \"{key}\"{options}}}]}}"),
            );
        }
        for first in (0..DOCUMENTS).step_by(500) {
            let (mut inputs, mut joined) = (String::new(), String::new());
            for id in first..first + 500 {
                write!(inputs, "{{_id: {id}, other: {}}},", (id * 7) % 900).expect("a string");
                let value = match id % 11 {
                    0 => format!("[{}, {}, {}]", id % 800, id % 13, id % 800),
                    1 => "null".to_owned(),
                    _ => format!("{}.0", id % 800),
                };
                write!(joined, "{{_id: {}, k: {value}, in: {{k: {value}}}}},", DOCUMENTS - id).expect("a string");
            }
            run(&mut server, &format!("{{insert: 'inputs', documents: [{inputs}]}}"));
            for name in ["indexed", "plain"] {
                run(&mut server, &format!("{{insert: '{name}', documents: [{joined}]}}"));
            }
        }
        for field in ["k", "in.k"] {
            for unwound in ["", ", {$unwind: '$j'}"] {
                let mut rows = |from: &str| {
                    let lookup = format!("{{from: '{from}', localField: 'other', foreignField: '{field}', as: 'j'}}");
                    let pipeline = format!("[{{$sort: {{_id: 1}}}}, {{$lookup: {lookup}}}{unwound}]");
                    let pipeline =
                        format!("{{aggregate: 'inputs', pipeline: {pipeline}, cursor: {{batchSize: 50000}}}}");
                    let reply = run(&mut server, &pipeline);
                    let cursor = reply.as_ref().get("cursor").and_then(ValueRef::as_document).expect("a cursor");
                    shell::print(cursor.get("firstBatch").expect("a batch"))
                };
                let (by_index, by_table) = (rows("indexed"), rows("plain"));
                assert!(by_index.len() > 100_000, "{} bytes", by_index.len());
                assert!(by_index == by_table, "{}: {field}{unwound} differs", engine.name);
            }
        }
    }
}
