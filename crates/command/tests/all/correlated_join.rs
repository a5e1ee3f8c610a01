//! `$lookup` by an equality inside `$expr` joins the documents that a condition without bounds joins, by an index and by
//! a table.

use crate::server::Server;
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_engines::{ENGINES, EngineOptions};
use bunko_testkit::shell;
use std::fmt::Write;

/// Values of every kind; each is joined with each.
const VALUES: &[&str] = &[
    "",
    "k: null",
    "k: undefined",
    "k: 1",
    "k: 1.0",
    "k: NumberDecimal('1')",
    "k: 2",
    "k: NaN",
    "k: 'a'",
    "k: 'A'",
    "k: ''",
    "k: {x: 1}",
    "k: {x: 'a'}",
    "k: [1]",
    "k: [{x: 1}]",
    "k: []",
    "k: true",
    "k: MinKey",
    "k: /a/",
];

/// Pipelines of a join; `EQUAL` stands for the condition.
const PIPELINES: &[&str] = &[
    "[{$match: {$expr: EQUAL}}]",
    "[{$match: {$and: [{$expr: {$and: [{$gt: ['$n', 3]}, EQUAL]}}]}}, {$sort: {n: -1}}, {$limit: 2}]",
    "[{$match: {n: {$gte: 4}, $expr: EQUAL}}, {$project: {x: '$k'}}]",
    "[{$match: {$or: [{$expr: EQUAL}, {n: 5}]}}]",
    "[{$match: {$expr: EQUAL}}, {$group: {_id: null, n: {$sum: '$n'}}}]",
];

const VARIABLES: &[&str] = &["{v: '$k'}", "{v: '$k.x'}", "{v: {$ifNull: ['$k', 2]}}"];

fn run(server: &mut Server, command: &str) -> DocumentBuf {
    server.run(1, "test", shell::parse_document(command).expect("a command").as_ref())
}

fn joined(server: &mut Server, lookup: &str, options: &str) -> String {
    let pipeline = format!("[{{$sort: {{_id: 1}}}}, {{$lookup: {lookup}}}]");
    let reply = run(server, &format!("{{aggregate: 'left', pipeline: {pipeline}, cursor: {{}}{options}}}"));
    let cursor = reply.as_ref().get("cursor").and_then(ValueRef::as_document).expect("a cursor");
    shell::print(cursor.get("firstBatch").expect("a batch"))
}

#[test]
fn a_correlated_equality_joins_as_a_condition_without_bounds_does() {
    // Keys of all engines are the same: the scripts of all engines and `conformance` show that.
    let mut server = Server::start(&ENGINES[0], &EngineOptions::default());
    for collection in ["left", "plain", "keyed", "hashed", "narrow", "collated"] {
        let mut documents = String::new();
        for (number, value) in VALUES.iter().enumerate() {
            let has_array = value.contains('[');
            if !(has_array && ["hashed", "narrow"].contains(&collection)) {
                write!(documents, "{{_id: {number}, n: {number}, {value}}},").expect("a string");
            }
        }
        run(&mut server, &format!("{{insert: '{collection}', documents: [{documents}]}}"));
    }
    let index = |collection: &str, key: &str, options: &str| {
        format!("{{createIndexes: '{collection}', indexes: [{{key: {key}, name: 'i'{options}}}]}}")
    };
    for command in [
        index("keyed", "{k: 1}", ""),
        index("hashed", "{k: 'hashed'}", ""),
        index("narrow", "{k: -1, n: 1}", ""),
        index("collated", "{k: 1}", ", collation: {locale: 'en', strength: 2}"),
        "{create: 'view', viewOn: 'narrow', pipeline: [{$match: {n: {$gte: 2}}}]}".to_owned(),
        "{create: 'computing', viewOn: 'keyed', pipeline: [{$set: {k: {$ifNull: ['$k', 1]}}}]}".to_owned(),
    ] {
        run(&mut server, &command);
    }
    let mut found = 0;
    for options in ["", ", collation: {locale: 'en', strength: 2}"] {
        for from in ["plain", "keyed", "hashed", "narrow", "collated", "view", "computing"] {
            if !options.is_empty() && ["view", "computing"].contains(&from) {
                continue;
            }
            // Each pipeline with the first variable, and the first pipeline with each variable.
            let pipelines = PIPELINES.iter().map(|pipeline| (pipeline, &VARIABLES[0]));
            let variables = VARIABLES.iter().skip(1).map(|variables| (&PIPELINES[0], variables));
            for (pipeline, variables) in pipelines.chain(variables) {
                for field in ["$k", "$k.x"] {
                    let lookup = |equal: &str| {
                        let pipeline = pipeline.replace("EQUAL", equal);
                        format!("{{from: '{from}', let: {variables}, pipeline: {pipeline}, as: 'j'}}")
                    };
                    let wanted = lookup(&format!("{{$not: [{{$ne: ['{field}', '$$v']}}]}}"));
                    let wanted = joined(&mut server, &wanted, options);
                    found += wanted.matches("n: ").count();
                    for equal in [format!("{{$eq: ['{field}', '$$v']}}"), format!("{{$eq: ['$$v', '{field}']}}")] {
                        let lookup = lookup(&equal);
                        assert_eq!(joined(&mut server, &lookup, options), wanted, "{lookup} {options}");
                    }
                }
            }
        }
    }
    assert!(found > 1_000, "{found}");
}
