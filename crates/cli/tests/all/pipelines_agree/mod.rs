//! Generated pipelines give equal results in every way of running them: as sent and rewritten, with indexes and by
//! scans, with much memory and little, by one worker and by two, on documents in tables and in memtables.
//!
//! `BUNKO_PIPELINES` sets the number of pipelines, `BUNKO_SEED` the first seed.

mod generator;

use crate::peer::binary;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Value, ValueRef};
use bunko_client::{ClientError, Connection, Uri};
use bunko_testkit::process::{Server, temporary_dbpath};
use bunko_testkit::random::Random;
use bunko_testkit::shell;
use generator::{Made, document, pipeline};

const DATABASE: &str = "agree";
const PIPELINES: u64 = 100;
const DOCUMENTS: u64 = 900;
/// Pipelines between two changes of the collection.
const PIPELINES_PER_STATE: u64 = 40;

const MUCH_BYTES: i64 = 100 << 20;
const LITTLE_BYTES: i64 = 16 << 10;
const LIMITS: [&str; 5] = [
    "internalQueryMaxBlockingSortMemoryUsageBytes",
    "internalDocumentSourceGroupMaxMemoryBytes",
    "internalDocumentSourceSetWindowFieldsMaxMemoryBytes",
    "internalDocumentSourceLookupCacheSizeBytes",
    "internalQueryFacetBufferSizeBytes",
];

/// One way to run a pipeline.
struct Way {
    name: &'static str,
    is_rewritten: bool,
    uses_indexes: bool,
    memory_bytes: i64,
    asked: Asked,
}

/// Where the stages of a pipeline are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// All in the command.
    Plainly,
    /// The first half in a view.
    ThroughView,
}

/// The ways to run a pipeline. The others are compared with the first.
const WAYS: [Way; 5] = [
    Way {
        name: "as it was sent",
        is_rewritten: false,
        uses_indexes: false,
        memory_bytes: MUCH_BYTES,
        asked: Asked::Plainly,
    },
    Way {
        name: "rewritten, by a scan",
        is_rewritten: true,
        uses_indexes: false,
        memory_bytes: MUCH_BYTES,
        asked: Asked::Plainly,
    },
    Way {
        name: "rewritten, with indexes",
        is_rewritten: true,
        uses_indexes: true,
        memory_bytes: MUCH_BYTES,
        asked: Asked::Plainly,
    },
    Way {
        name: "with little memory",
        is_rewritten: true,
        uses_indexes: true,
        memory_bytes: LITTLE_BYTES,
        asked: Asked::Plainly,
    },
    Way {
        name: "through a view",
        is_rewritten: true,
        uses_indexes: true,
        memory_bytes: MUCH_BYTES,
        asked: Asked::ThroughView,
    },
];

struct World {
    connection: Connection,
    _server: Server,
    _dbpath: tempfile::TempDir,
}

fn parsed(text: &str) -> DocumentBuf {
    shell::parse_document(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

impl World {
    fn start() -> Self {
        let dbpath = temporary_dbpath();
        let arguments = ["--setParameter", "enableTestCommands=1"];
        let server = Server::start(&binary(), dbpath.path(), &arguments).expect("the server starts");
        let uri: Uri = format!("mongodb://{}/", server.address()).parse().expect("a valid URI");
        let connection = Connection::connect(&uri).expect("the server accepts connections");
        Self { connection, _server: server, _dbpath: dbpath }
    }

    /// The reply, or the error code.
    fn run(&mut self, database: &str, command: &DocumentBuf) -> Result<DocumentBuf, i32> {
        match self.connection.run_command(database, command.as_ref()) {
            Ok(reply) => Ok(reply),
            Err(ClientError::Command(failure)) => Err(failure.code),
            Err(error) => panic!("{command:?}: {error}"),
        }
    }

    fn succeed(&mut self, database: &str, command: &DocumentBuf) -> DocumentBuf {
        let reply = self.run(database, command).unwrap_or_else(|code| panic!("{command:?}: {code}"));
        assert!(reply.as_ref().get("writeErrors").is_none(), "{command:?}: {reply:?}");
        reply
    }

    fn insert(&mut self, collection: &str, documents: &ArrayBuf) {
        self.succeed(DATABASE, &DocumentBuf::new().with("insert", collection).with("documents", documents));
    }

    fn populate(&mut self, random: &mut Random) {
        let mut all = ArrayBuf::new();
        (0..DOCUMENTS).for_each(|id| _ = all.push(&parsed(&document(id, DOCUMENTS, random))));
        let some: ArrayBuf = all.as_ref().iter().step_by(5).collect();
        self.insert("c", &all);
        self.insert("plain", &some);
        let indexes = "{createIndexes: 'c', indexes: [{key: {k: 1}, name: 'k'}, {key: {n: -1, k: 1}, name: 'nk'},
            {key: {t: 1}, name: 't'}, {key: {a: 1}, name: 'a'}, {key: {'o.p': 1, _id: 1}, name: 'op'}]}";
        self.succeed(DATABASE, &parsed(indexes));
    }

    /// Moves the memtable into a table, then inserts, updates and deletes documents.
    fn change(&mut self, next: &mut u64, random: &mut Random) {
        self.succeed("admin", &parsed("{fsync: 1}"));
        let (from, number) = (random.below(*next), random.below(90));
        let changed = format!(
            "{{update: 'c', updates: [{{q: {{_id: {{$gte: {from}, $lt: {}}}}}, u: {{$inc: {{k: 1}}, $push: {{a: 7}}}}, multi: true}}]}}",
            from + number
        );
        self.succeed(DATABASE, &parsed(&changed));
        let gone = format!("{{delete: 'c', deletes: [{{q: {{k: {}}}, limit: 0}}]}}", random.below(40));
        self.succeed(DATABASE, &parsed(&gone));
        let mut more = ArrayBuf::new();
        for _ in 0..=random.below(200) {
            more.push(&parsed(&document(*next, DOCUMENTS, random)));
            *next += 1;
        }
        self.insert("c", &more);
    }

    fn prepare(&mut self, way: &Way) {
        let mode = if way.is_rewritten { "off" } else { "alwaysOn" };
        let point = format!("{{configureFailPoint: 'disablePipelineOptimization', mode: '{mode}'}}");
        self.succeed("admin", &parsed(&point));
        let mut limits = DocumentBuf::new().with("setParameter", 1);
        for name in LIMITS {
            limits.append(name, way.memory_bytes);
        }
        self.succeed("admin", &limits);
    }

    /// Makes a view of these stages; returns its name.
    fn show(&mut self, stages: &[String]) -> &'static str {
        // The view of an earlier pipeline may not exist.
        let _ = self.run(DATABASE, &parsed("{drop: 'shown'}"));
        let text = format!("{{create: 'shown', viewOn: 'c', pipeline: [{}]}}", stages.join(", "));
        self.succeed(DATABASE, &parsed(&text.replace('\n', " ")));
        "shown"
    }

    /// All results of a pipeline, sorted unless they have a defined order; or the error code.
    fn results(&mut self, way: &Way, made: &Made) -> Result<Vec<String>, i32> {
        let hint = if way.uses_indexes { "" } else { ", hint: {$natural: 1}" };
        let options = made.options;
        // A view has its own collation.
        let half = if way.asked == Asked::ThroughView && options.is_empty() { made.stages.len() / 2 } else { 0 };
        let (inside, behind) = made.stages.split_at(half);
        let source = if half == 0 { "c" } else { self.show(inside) };
        let stages = behind.join(", ");
        let text =
            format!("{{aggregate: '{source}', pipeline: [{stages}], cursor: {{batchSize: 100000}}{hint}{options}}}");
        let reply = self.run(DATABASE, &parsed(&text.replace('\n', " ")))?;
        let cursor = reply.as_ref().get("cursor").and_then(ValueRef::as_document).expect("a cursor");
        assert!(matches!(cursor.get("id"), Some(ValueRef::Int64(0))), "all of it is in the first batch");
        let batch = cursor.get("firstBatch").and_then(ValueRef::as_array).expect("a batch");
        let mut results: Vec<_> = batch.iter().map(|result| shell::print(in_order(result).as_ref())).collect();
        if !made.is_ordered {
            results.sort();
        }
        Ok(results)
    }
}

/// The value with the fields of its documents sorted by name, because an index returns them in its own order.
fn in_order(value: ValueRef<'_>) -> Value {
    let fields = |document: DocumentRef<'_>| {
        let mut fields: Vec<_> = document.iter().collect();
        fields.sort_by_key(|field| field.name);
        fields.into_iter().fold(DocumentBuf::new(), |all, field| all.with(field.name, in_order(field.value).as_ref()))
    };
    match value {
        ValueRef::Document(document) => Value::Document(fields(document)),
        ValueRef::Array(array) => {
            let mut all = ArrayBuf::new();
            array.iter().for_each(|element| _ = all.push(in_order(element).as_ref()));
            Value::Array(all)
        }
        other => other.to_value(),
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |said| said.parse().expect("a number"))
}

#[test]
fn pipelines_give_the_same_however_they_are_run() {
    let (seed, count) = (setting("BUNKO_SEED", 20), setting("BUNKO_PIPELINES", PIPELINES));
    let mut world = World::start();
    let mut random = Random(seed);
    world.populate(&mut random);
    let (mut next, mut empty, mut failed) = (DOCUMENTS, 0, 0);
    for number in 0..count {
        if number % PIPELINES_PER_STATE == PIPELINES_PER_STATE - 1 {
            world.change(&mut next, &mut random);
        }
        let made = pipeline(&mut random);
        let mut first = None;
        for way in &WAYS {
            world.prepare(way);
            let results = world.results(way, &made);
            let Some(expected) = &first else {
                empty += u64::from(results.as_ref().is_ok_and(Vec::is_empty));
                failed += u64::from(results.is_err());
                first = Some(results);
                continue;
            };
            if results == *expected {
                continue;
            }
            let difference = match (&results, expected) {
                (Ok(results), Ok(expected)) => {
                    let at = results.iter().zip(expected).take_while(|(one, other)| one == other).count();
                    let lengths = (results.len(), expected.len());
                    format!("{lengths:?}, at {at}: {:?} instead of {:?}", results.get(at), expected.get(at))
                }
                _ => format!("{results:?} instead of {expected:?}"),
            };
            let (stages, options) = (made.stages.join(",\n "), made.options);
            panic!("pipeline {number} of seed {seed}, {}:\n[{stages}]{options}\n{difference}", way.name);
        }
    }
    println!("{count} pipelines from seed {seed}, {} ways each; {empty} found nothing, {failed} failed", WAYS.len());
    assert!(empty * 3 < count && failed * 5 < count, "most of them have results");
}

/// Number of documents that two threads read.
const MANY: u64 = 90_000;
/// Number of pipelines over that many documents.
const PIPELINES_OVER_MANY: u64 = 40;

/// A filter on values, and stages that use what it finds.
fn pipeline_over_many(random: &mut Random) -> String {
    let (least, most) = (random.below(900), 100 + random.below(900));
    let filter = match random.below(8) {
        0 => format!("{{v: {{$gte: {least}, $lt: {}}}}}", least + most),
        1 => format!("{{w: {{$in: [{}, {}]}}}}", least % 13, most % 13),
        2 => format!("{{$or: [{{v: {{$lt: {least}}}}}, {{w: {}}}]}}", most % 13),
        3 => format!("{{t: {{$regex: '{}$'}}}}", least % 100),
        4 => format!("{{v: {{$gte: {least}}}, w: {{$ne: {}}}}}", most % 13),
        5 => format!("{{$jsonSchema: {{required: ['e'], properties: {{v: {{minimum: {least}}}}}}}}}"),
        6 => format!("{{g: {{$geoWithin: {{$box: [[{}, 3], [11, {}]]}}}}}}", least % 13, most % 80),
        _ => format!("{{e: {{$exists: {}}}}}", random.one_in(2)),
    };
    let behind = match random.below(11) {
        // A sort by a field that no later stage reads.
        8 => "{$sort: {v: -1, _id: 1}}, {$project: {t: 1}}".to_owned(),
        9 => "{$sort: {'g.1': 1, v: -1, _id: 1}}, {$group: {_id: '$w', first: {$first: '$t'}, last: {$last: '$t'}}}, {$sort: {_id: 1}}".to_owned(),
        10 => "{$sort: {t: -1}}, {$limit: 900}, {$project: {_id: 0, v: 1}}".to_owned(),
        0 | 1 => "{$count: 'n'}".to_owned(),
        2 => format!("{{$limit: {}}}, {{$project: {{v: 1}}}}", 1 + random.below(30_000)),
        3 => format!("{{$skip: {}}}, {{$limit: 9}}", random.below(30_000)),
        4 => "{$group: {_id: '$w', n: {$sum: '$v'}, first: {$first: '$_id'}, last: {$last: '$t'}}}, {$sort: {_id: 1}}"
            .to_owned(),
        5 => "{$sort: {v: -1}}, {$limit: 500}".to_owned(),
        6 => "{$project: {x: {$add: ['$v', '$w']}}}, {$match: {x: {$gt: 990}}}".to_owned(),
        _ => "{$match: {e: 7}}, {$limit: 1000}".to_owned(),
    };
    format!("[{{$match: {filter}}}, {behind}]")
}

#[test]
fn two_workers_show_what_one_shows_in_its_order() {
    let (seed, count) = (setting("BUNKO_SEED", 20), setting("BUNKO_PIPELINES", PIPELINES_OVER_MANY));
    let mut world = World::start();
    let mut random = Random(seed);
    world.succeed(DATABASE, &parsed("{insert: 'one', documents: [{_id: 1}]}"));
    let fill = format!(
        "{{aggregate: 'one', cursor: {{}}, pipeline: [{{$set: {{i: {{$range: [0, {MANY}]}}}}}}, {{$unwind: '$i'}}, {{$project: {{
            _id: '$i', v: {{$mod: [{{$multiply: ['$i', 7919]}}, 1000]}}, w: {{$mod: ['$i', 13]}}, t: {{$concat: ['t', {{$toString: '$i'}}]}}, g: ['$w', {{$mod: ['$i', 80]}}],
            e: {{$cond: [{{$eq: [{{$mod: ['$i', 3]}}, 0]}}, 7, '$$REMOVE']}}}}}}, {{$out: 'many'}}]}}"
    );
    world.succeed(DATABASE, &parsed(&fill.replace('\n', " ")));
    world.succeed("admin", &parsed("{fsync: 1}"));
    for change in [
        "{delete: 'many', deletes: [{q: {_id: {$gte: 30000, $lt: 41000}}, limit: 0}]}",
        "{update: 'many', updates: [{q: {w: 5}, u: {$inc: {v: 1}}, multi: true}]}",
    ] {
        world.succeed(DATABASE, &parsed(change));
    }
    for number in 0..count {
        let stages = pipeline_over_many(&mut random);
        let text = format!("{{aggregate: 'many', pipeline: {stages}, cursor: {{batchSize: 100000}}}}");
        let results = [1, 2].map(|workers| {
            world.succeed("admin", &parsed(&format!("{{setParameter: 1, operationWorkersMax: {workers}}}")));
            let reply = world.succeed(DATABASE, &parsed(&text));
            let cursor = reply.as_ref().get("cursor").and_then(ValueRef::as_document).expect("a cursor");
            cursor.get("firstBatch").and_then(ValueRef::as_array).expect("a batch").to_owned()
        });
        let lengths = results.each_ref().map(|batch| batch.as_ref().count());
        let [one, two] = results.each_ref().map(|batch| batch.as_ref().as_document());
        assert!(one == two, "pipeline {number} of seed {seed}: {lengths:?}\n{stages}");
    }
}
