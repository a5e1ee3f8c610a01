//! Every kind of collection, read in every way: each way reads all documents, or fails with a code. `tests/targets` has
//! the errors; `REWRITE=1 cargo test` writes them again. Read them.
//!
//! ```text
//! read local=oplog.rs
//! ----
//! $search: 115 CommandNotSupported
//! ```

use crate::server::Server;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, number};
use bunko_engines::{ENGINES, EngineOptions};
use bunko_store::LogOptions;
use bunko_testkit::shell;
use std::fmt::Write as _;

/// Ways to read the documents of `NAME`: the command, and the place of the count in its reply.
const OF_DOCUMENTS: &[(&str, &str, Told)] = &[
    ("find by a filter", "{find: 'NAME', filter: {nothing: {$exists: false}}, batchSize: 100000}", Told::Batch),
    ("find sorted", "{find: 'NAME', sort: {ts: -1}, batchSize: 100000}", Told::Batch),
    ("find from the end", "{find: 'NAME', sort: {$natural: -1}, batchSize: 100000}", Told::Batch),
    ("find projected", "{find: 'NAME', projection: {_id: 1}, batchSize: 100000}", Told::Batch),
    ("aggregate", "{aggregate: 'NAME', pipeline: [], cursor: {batchSize: 100000}}", Told::Batch),
    (
        "aggregate with a hint",
        "{aggregate: 'NAME', pipeline: [], cursor: {batchSize: 100000}, hint: {$natural: -1}}",
        Told::Batch,
    ),
    (
        "$match",
        "{aggregate: 'NAME', pipeline: [{$match: {nothing: {$exists: false}}}], cursor: {batchSize: 100000}}",
        Told::Batch,
    ),
    ("$count", "{aggregate: 'NAME', pipeline: [{$count: 'n'}], cursor: {}}", Told::Field),
    (
        "$match, $count",
        "{aggregate: 'NAME', pipeline: [{$match: {nothing: null}}, {$count: 'n'}], cursor: {}}",
        Told::Field,
    ),
    ("$group", "{aggregate: 'NAME', pipeline: [{$group: {_id: null, n: {$sum: 1}}}], cursor: {}}", Told::Field),
    (
        "$sort, $group",
        "{aggregate: 'NAME', pipeline: [{$sort: {ts: 1}}, {$group: {_id: null, n: {$sum: 1}}}], cursor: {}}",
        Told::Field,
    ),
    (
        "$facet",
        "{aggregate: 'NAME', pipeline: [{$facet: {a: [{$count: 'n'}]}}, {$unwind: '$a'}, {$replaceWith: '$a'}], cursor: {}}",
        Told::Field,
    ),
    (
        "$lookup",
        "{aggregate: 1, pipeline: [{$documents: [{}]}, {$lookup: {from: 'NAME', pipeline: [], as: 'r'}}, {$project: {n: {$size: '$r'}}}], cursor: {}}",
        Told::Field,
    ),
    (
        "$lookup by a field",
        "{aggregate: 1, pipeline: [{$documents: [{}]}, {$lookup: {from: 'NAME', localField: 'no', foreignField: 'no', as: 'r'}}, {$project: {n: {$size: '$r'}}}], cursor: {}}",
        Told::Field,
    ),
    (
        "$lookup inside $lookup",
        "{aggregate: 1, pipeline: [{$documents: [{}]}, {$lookup: {pipeline: [{$documents: [{}]}, {$lookup: {from: 'NAME', pipeline: [], as: 'r'}}, {$project: {n: {$size: '$r'}}}], as: 'o'}}, {$replaceWith: {$first: '$o'}}], cursor: {}}",
        Told::Field,
    ),
    (
        "$unionWith",
        "{aggregate: 1, pipeline: [{$documents: []}, {$unionWith: 'NAME'}, {$count: 'n'}], cursor: {}}",
        Told::Field,
    ),
    (
        "$unionWith a pipeline",
        "{aggregate: 1, pipeline: [{$documents: []}, {$unionWith: {coll: 'NAME', pipeline: [{$count: 'n'}]}}], cursor: {}}",
        Told::Field,
    ),
    ("a view", "{find: 'view_of', batchSize: 100000}", Told::Batch),
    ("count of a view", "{count: 'view_of'}", Told::Number("n")),
    ("a view of a view", "{aggregate: 'view_of_view', pipeline: [{$count: 'n'}], cursor: {}}", Told::Field),
    (
        "$lookup of a view",
        "{aggregate: 1, pipeline: [{$documents: [{}]}, {$lookup: {from: 'view_of', pipeline: [], as: 'r'}}, {$project: {n: {$size: '$r'}}}], cursor: {}}",
        Told::Field,
    ),
    ("count", "{count: 'NAME'}", Told::Number("n")),
    ("count by a filter", "{count: 'NAME', query: {nothing: null}}", Told::Number("n")),
    ("count with a hint", "{count: 'NAME', hint: {$natural: 1}}", Told::Number("n")),
    (
        "mapReduce",
        "{mapReduce: 'NAME', map: 'function() { emit(1, 1) }', reduce: 'function(k, all) { return Array.sum(all) }', out: {inline: 1}}",
        Told::Value,
    ),
    ("collStats", "{collStats: 'NAME'}", Told::Number("count")),
    (
        "$collStats",
        "{aggregate: 'NAME', pipeline: [{$collStats: {count: {}}}, {$project: {n: '$count'}}], cursor: {}}",
        Told::Field,
    ),
    (
        "$collStats of storage",
        "{aggregate: 'NAME', pipeline: [{$collStats: {storageStats: {}}}, {$project: {n: '$storageStats.count'}}], cursor: {}}",
        Told::Field,
    ),
    ("dataSize", "{dataSize: 'DATABASE.NAME'}", Told::Number("numObjects")),
    ("validate", "{validate: 'NAME'}", Told::Number("nrecords")),
];

/// Commands and stages about other things than documents. They succeed or fail.
const OF_OTHER_THINGS: &[(&str, &str)] = &[
    ("find with the hint of an index", "{find: 'NAME', hint: 'none_1'}"),
    ("tailable find", "{find: 'NAME', tailable: true}"),
    ("find that can be resumed", "{find: 'NAME', hint: {$natural: 1}, $_requestResumeToken: true}"),
    ("returnKey", "{find: 'NAME', returnKey: true}"),
    ("showRecordId", "{find: 'NAME', showRecordId: true}"),
    ("$meta of recordId", "{aggregate: 'NAME', pipeline: [{$project: {r: {$meta: 'recordId'}}}], cursor: {}}"),
    ("$text", "{find: 'NAME', filter: {$text: {$search: 'a'}}}"),
    ("$text in aggregate", "{aggregate: 'NAME', pipeline: [{$match: {$text: {$search: 'a'}}}], cursor: {}}"),
    ("$near", "{find: 'NAME', filter: {a: {$near: [0, 0]}}}"),
    ("$geoNear", "{aggregate: 'NAME', pipeline: [{$geoNear: {near: [0, 0], distanceField: 'd'}}], cursor: {}}"),
    (
        "$geoNear inside $unionWith",
        "{aggregate: 1, pipeline: [{$documents: []}, {$unionWith: {coll: 'NAME', pipeline: [{$geoNear: {near: [0, 0], distanceField: 'd'}}]}}], cursor: {}}",
    ),
    ("$search", "{aggregate: 'NAME', pipeline: [{$search: {text: {query: 'a', path: 'a'}}}], cursor: {}}"),
    (
        "$vectorSearch",
        "{aggregate: 'NAME', pipeline: [{$vectorSearch: {index: 'v', path: 'a', queryVector: [1], numCandidates: 1, limit: 1}}], cursor: {}}",
    ),
    ("$sample", "{aggregate: 'NAME', pipeline: [{$sample: {size: 1}}], cursor: {}}"),
    (
        "$graphLookup",
        "{aggregate: 1, pipeline: [{$documents: [{}]}, {$graphLookup: {from: 'NAME', startWith: 1, connectFromField: 'a', connectToField: '_id', as: 'r'}}], cursor: {}}",
    ),
    ("$collStats of latencies", "{aggregate: 'NAME', pipeline: [{$collStats: {latencyStats: {}}}], cursor: {}}"),
    ("$collStats of scans", "{aggregate: 'NAME', pipeline: [{$collStats: {queryExecStats: {}}}], cursor: {}}"),
    ("$indexStats", "{aggregate: 'NAME', pipeline: [{$indexStats: {}}], cursor: {}}"),
    ("$planCacheStats", "{aggregate: 'NAME', pipeline: [{$planCacheStats: {}}], cursor: {}}"),
    ("$listCatalog", "{aggregate: 'NAME', pipeline: [{$listCatalog: {}}], cursor: {}}"),
    ("$listSearchIndexes", "{aggregate: 'NAME', pipeline: [{$listSearchIndexes: {}}], cursor: {}}"),
    ("listIndexes", "{listIndexes: 'NAME'}"),
    ("dataSize of a part", "{dataSize: 'DATABASE.NAME', keyPattern: {_id: 1}, min: {_id: 0}, max: {_id: 1}}"),
    ("explain of find", "{explain: {find: 'NAME', filter: {a: 1}, limit: 1}}"),
    ("explain of count", "{explain: {count: 'NAME'}}"),
    ("explain of distinct", "{explain: {distinct: 'NAME', key: 'a'}}"),
    ("explain of aggregate", "{explain: {aggregate: 'NAME', pipeline: [{$group: {_id: '$op'}}], cursor: {}}}"),
    ("explain of $out", "{explain: {aggregate: 'NAME', pipeline: [{$out: {db: 'test', coll: 'copied'}}], cursor: {}}}"),
    ("explain of delete", "{explain: {delete: 'NAME', deletes: [{q: {}, limit: 0}]}}"),
    ("insert", "{insert: 'NAME', documents: []}"),
    ("createIndexes", "{createIndexes: 'NAME', indexes: [{key: {a: 1}, name: 'a_1'}]}"),
    ("dropIndexes", "{dropIndexes: 'NAME', index: 'a_1'}"),
    ("collMod", "{collMod: 'NAME'}"),
    ("compact", "{compact: 'NAME', force: true}"),
    ("convertToCapped", "{convertToCapped: 'NAME', size: 100000}"),
    ("planCacheClear", "{planCacheClear: 'NAME'}"),
];

/// The place of the number of documents in a reply.
#[derive(Clone, Copy)]
enum Told {
    /// The number of documents in the first batch.
    Batch,
    /// `n` of the only document, which is missing if the number is zero.
    Field,
    Number(&'static str),
    /// `value` of the only result of a `mapReduce`.
    Value,
}

/// The time series.
const SERIES: &str = "series";

struct Reader(Server);

impl Reader {
    fn run(&mut self, (database, collection): (&str, &str), command: &str) -> DocumentBuf {
        let command = command.replace("DATABASE", database).replace("NAME", collection);
        let parsed = shell::parse_document(&command).unwrap_or_else(|error| panic!("{command}: {error}"));
        self.0.run(1, database, parsed.as_ref())
    }

    /// The number of documents that a command reads, or its error.
    fn count(&mut self, target: (&str, &str), command: &str, told: Told) -> Result<i64, String> {
        let reply = self.run(target, command);
        refusal(reply.as_ref()).map_or(Ok(()), Err)?;
        if target.1 == SERIES && ["ollStats", "{validate"].iter().any(|part| command.contains(part)) {
            return Err("tells of buckets".to_owned());
        }
        Ok(told.count(reply.as_ref()).unwrap_or_else(|| panic!("{command}: {}", shell::print(reply.as_ref().into()))))
    }

    fn all(&mut self, target: (&str, &str)) -> i64 {
        self.count(target, "{find: 'NAME', batchSize: 100000}", Told::Batch).expect("every kind is found")
    }

    fn read(&mut self, target: (&str, &str)) -> String {
        let mut told = String::new();
        for (view, on) in [("view_of", target.1), ("view_of_view", "view_of")] {
            self.run(target, &format!("{{drop: '{view}'}}"));
            let reply = self.run(target, &format!("{{create: '{view}', viewOn: '{on}', pipeline: []}}"));
            assert_eq!(refusal(reply.as_ref()), None, "{view} on {target:?}");
        }
        let _ = writeln!(told, "{}", if self.all(target) > 0 { "has documents" } else { "has none" });
        for (way, command, place) in OF_DOCUMENTS {
            // A read of the oplog may write into it.
            let before = self.all(target);
            match self.count(target, command, *place) {
                Ok(count) => {
                    assert!((before..=self.all(target)).contains(&count), "{target:?} {way}: {count}, not {before}");
                }
                Err(refusal) => drop(writeln!(told, "{way}: {refusal}")),
            }
        }
        for (way, command) in OF_OTHER_THINGS {
            let reply = self.run(target, command);
            if let Some(refusal) = refusal(reply.as_ref()) {
                let _ = writeln!(told, "{way}: {refusal}");
            }
        }
        told
    }
}

impl Told {
    fn count(self, reply: DocumentRef<'_>) -> Option<i64> {
        let batch = || reply.get("cursor")?.as_document()?.get("firstBatch")?.as_array();
        let number = |document: DocumentRef<'_>, name: &str| document.get(name).and_then(number::as_i64_exact);
        match self {
            Self::Batch => batch().map(|batch| batch.iter().count() as i64),
            Self::Field => {
                batch().and_then(|batch| batch.get(0).map_or(Some(0), |only| number(only.as_document()?, "n")))
            }
            Self::Number(name) => number(reply, name),
            Self::Value => {
                let results = reply.get("results").and_then(ValueRef::as_array)?;
                results.get(0).map_or(Some(0), |only| number(only.as_document()?, "value"))
            }
        }
    }
}

/// The code of a failure, with its name.
fn refusal(reply: DocumentRef<'_>) -> Option<String> {
    let code = reply.get("code").and_then(number::as_i64_exact)?;
    Some(format!("{code} {}", reply.get("codeName").and_then(ValueRef::as_str).unwrap_or_default()))
}

/// Creates a collection of each kind, with documents.
const BEGINNING: &[(&str, &str)] = &[
    ("test", "{insert: 'collection', documents: [{_id: 1, a: 1}, {_id: 2, a: 'two'}]}"),
    ("test", "{create: 'capped', capped: true, size: 100000}"),
    ("test", "{insert: 'capped', documents: [{_id: 1}, {_id: 2}, {_id: 3}]}"),
    ("test", "{create: 'view', viewOn: 'collection', pipeline: [{$match: {_id: 1}}]}"),
    ("test", "{create: 'series', timeseries: {timeField: 't'}}"),
    (
        "test",
        "{insert: 'series', documents: [{t: ISODate('2026-01-01T00:00:00Z')}, {t: ISODate('2026-01-01T00:00:01Z')}]}",
    ),
    ("test", "{insert: 'system.js', documents: [{_id: 'f', value: 'function() {}'}]}"),
    ("profiled", "{profile: 2}"),
    ("profiled", "{find: 'none'}"),
    ("profiled", "{profile: 0}"),
    (
        "test",
        "{insert: 'collection', documents: [{_id: 3}], lsid: {id: UUID('00112233-4455-6677-8899-aabbccddee01')}, txnNumber: NumberLong(1)}",
    ),
    ("local", "{insert: 'own', documents: [{_id: 1}]}"),
    ("admin", "{createUser: 'reader', pwd: 'secret', roles: []}"),
];

#[test]
fn every_way_to_read_meets_all_documents_or_is_refused() {
    datadriven::walk("tests/targets", |file| {
        let log = LogOptions { history_bytes_max: Some(128 << 20), ..LogOptions::default() };
        let mut reader = Reader(Server::start_as_member(&ENGINES[0], &EngineOptions::default(), log));
        for (database, command) in BEGINNING {
            let reply = reader.run((database, ""), command);
            assert_eq!(refusal(reply.as_ref()), None, "{command}");
        }
        file.run(|case| {
            assert_eq!(case.directive, "read", "unknown directive");
            let (database, collection) = case.args.iter().next().expect("database=collection");
            reader.read((database, &collection[0]))
        });
    });
}
