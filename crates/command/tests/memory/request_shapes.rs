//! Every shape of request that can grow large: its memory is drawn before it is used, and stays within a factor of its
//! bytes.

use crate::peak_bytes;
use crate::server::Server;
use crate::shapes::{Shape, command};
use bunko_bson::{DocumentBuf, number};
use bunko_engines::{ENGINES, EngineOptions};
use bunko_operation::{MemoryLimits, ServerMemory};
use bunko_store::LogOptions;
use bunko_testkit::shell;

/// The large part of a request that runs within a budget, in bytes.
const LARGE_BYTES: usize = 384 << 10;
/// The large part of a request that is measured without a budget, in bytes.
const MEASURED_BYTES: usize = 128 << 10;
/// A budget that is too small for most of the requests, in bytes.
const BUDGET_BYTES: usize = 1 << 20;

/// Maximum additional memory of a command that is recorded, in bytes.
const NOTE_BYTES_MAX: usize = 12 * MEASURED_BYTES;

const fn shape(command: &'static str, factor_max: usize) -> Shape {
    Shape { command, factor_max }
}

const SHAPES: &[Shape] = &[
    shape("{find: 't', filter: {z: {$in: '@ints'}}}", 10),
    shape("{find: 't', filter: {a: {$in: '@ints'}}}", 10),
    shape("{find: 't', filter: {a: {$in: '@ints'}, b: {$in: '@ints'}}}", 12),
    shape("{find: 't', filter: {_id: {$in: '@ints'}}, sort: {_id: 1}}", 10),
    shape("{find: 't', filter: {z: {$nin: '@strings'}}}", 11),
    shape("{find: 't', filter: {a: {$in: '@strings'}}}", 11),
    shape("{find: 't', filter: {a: {$in: '@strings'}}, collation: {locale: 'en', strength: 2}}", 11),
    shape("{find: 't', filter: {a: {$in: '@nulls'}}}", 23),
    shape("{find: 't', filter: {a: {$in: '@documents'}}}", 9),
    shape("{find: 't', filter: {z: {$in: '@regexes'}}}", 204),
    shape("{find: 't', filter: {a: {$all: '@ints'}}}", 59),
    shape("{find: 't', filter: {z: {$elemMatch: {$in: '@ints'}}}}", 10),
    shape("{find: 't', filter: {z: {$not: {$in: '@ints'}}}}", 10),
    shape("{find: 't', filter: {z: {$type: '@types'}}}", 4),
    shape("{find: 't', filter: {z: {$bitsAllSet: '@bits'}}}", 5),
    shape("{find: 't', filter: {z: {$bitsAnySet: '@binary'}}}", 79),
    shape("{find: 't', filter: {z: '@letters'}}", 5),
    shape("{find: 't', filter: {z: {$regex: '@alternatives'}}}", 4),
    shape("{find: 't', filter: {$or: '@equalities'}}", 48),
    shape("{find: 't', filter: {$or: '@conditions'}}", 142),
    shape("{find: 't', filter: {$and: '@equalities'}}", 34),
    shape("{find: 't', filter: {$nor: '@equalities'}}", 48),
    shape("{find: 't', filter: {$and: '@empty'}}", 35),
    shape("{find: 't', filter: '@operators'}", 28),
    shape("{find: 't', filter: {$text: {$search: '@text'}}}", 22),
    shape("{find: 't', filter: {p: {$geoWithin: {$geometry: {type: 'Polygon', coordinates: '@ring'}}}}}", 12),
    shape("{find: 't', filter: {$jsonSchema: {properties: '@schemas'}}}", 21),
    shape("{find: 't', filter: {$jsonSchema: {enum: '@documents'}}}", 11),
    shape("{find: 't', filter: {$jsonSchema: '@nested'}}", 90),
    shape("{find: 't', filter: {$expr: {$in: ['$a', '@ints']}}}", 30),
    shape("{find: 't', filter: {$expr: {$or: '@comparisons'}}}", 18),
    shape("{find: 't', filter: {$expr: {$eq: ['$a', {$literal: '@documents'}]}}}", 6),
    shape("{find: 't', projection: '@ones'}", 39),
    shape("{find: 't', projection: '@sums'}", 17),
    shape("{find: 't', projection: {z: {$in: ['$a', '@ints']}}}", 28),
    shape("{find: 't', projection: {z: {$switch: {branches: '@branches'}}}}", 17),
    shape("{find: 't', projection: {z: {$elemMatch: {$in: '@ints'}}}}", 15),
    shape("{find: 't', let: '@literals', filter: {a: 1}}", 13),
    shape("{find: 't', filter: {a: 1}, hint: '@ones'}", 4),
    shape("{find: 't', filter: {a: 1}, comment: '@documents'}", 4),
    shape("{find: 't', filter: {a: 1}, min: '@ones', max: '@ones', hint: {a: 1}}", 4),
    shape("{count: 't', query: {a: {$in: '@ints'}}}", 10),
    shape("{distinct: 't', key: 'a', query: {a: {$in: '@ints'}}}", 10),
    shape("{aggregate: 't', pipeline: [{$match: {a: {$in: '@ints'}}}], cursor: {}}", 18),
    shape("{aggregate: 't', pipeline: [{$sort: {b: 1}}, {$limit: 5}, {$match: {$or: '@conditions'}}], cursor: {}}", 22),
    shape("{aggregate: 't', pipeline: [{$addFields: '@sums'}], cursor: {}}", 18),
    shape("{aggregate: 't', pipeline: [{$project: '@ones'}], cursor: {}}", 39),
    shape("{aggregate: 't', pipeline: [{$group: '@accumulators'}], cursor: {}}", 17),
    shape("{aggregate: 't', pipeline: [{$group: '@pushes'}], cursor: {}}", 31),
    shape("{aggregate: 't', pipeline: [{$facet: '@facets'}], cursor: {}}", 22),
    shape("{aggregate: 't', pipeline: [{$setWindowFields: {sortBy: {a: 1}, output: '@windows'}}], cursor: {}}", 19),
    shape("{aggregate: 't', pipeline: [{$fill: {output: '@fills'}}], cursor: {}}", 37),
    shape("{aggregate: 't', pipeline: [{$bucket: {groupBy: '$a', boundaries: '@ints'}}], cursor: {}}", 186),
    shape("{aggregate: 1, pipeline: [{$documents: '@documents'}], cursor: {}}", 10),
    shape(
        "{aggregate: 't', pipeline: [{$lookup: {from: 't', let: '@literals', pipeline: [], as: 'z'}}], cursor: {}}",
        21,
    ),
    shape(
        "{aggregate: 't', pipeline: [{$lookup: {from: 't', pipeline: [{$match: {a: {$in: '@ints'}}}], as: 'z'}}], cursor: {}}",
        25,
    ),
    shape(
        "{aggregate: 't', pipeline: [{$unionWith: {coll: 't', pipeline: [{$match: {$or: '@conditions'}}]}}], cursor: {}}",
        144,
    ),
    shape(
        "{aggregate: 't', pipeline: [{$graphLookup: {from: 't', startWith: '@ints', connectFromField: 'a', \
         connectToField: 'b', as: 'z', maxDepth: 0}}], cursor: {}}",
        51,
    ),
    shape(
        "{aggregate: 't', pipeline: [{$redact: {$cond: [{$in: ['$a', '@ints']}, '$$KEEP', '$$PRUNE']}}], cursor: {}}",
        28,
    ),
    shape(
        "{aggregate: 't', pipeline: [{$replaceWith: {$mergeObjects: [{$literal: '@ones'}, '$$ROOT']}}], cursor: {}}",
        30,
    ),
    shape("{aggregate: 't', pipeline: [{$search: {compound: {should: '@should'}}}], cursor: {}}", 15),
    shape("{aggregate: 't', pipeline: [{$search: {text: {path: 'a', query: '@words'}}}], cursor: {}}", 7),
    shape("{aggregate: 't', pipeline: [{$merge: {into: 'u', let: '@literals', whenMatched: []}}], cursor: {}}", 17),
    shape("{explain: {find: 't', filter: {a: {$in: '@ints'}}}, verbosity: 'queryPlanner'}", 33),
    shape("{delete: 't', deletes: [{q: {a: {$in: '@ints'}}, limit: 0}]}", 10),
    shape("{update: 't', updates: [{q: {a: {$in: '@ints'}}, u: {$set: {c: 1}}, multi: true}]}", 10),
    shape("{update: 't', updates: [{q: {_id: -1}, u: {$set: '@ones'}}]}", 46),
    shape("{update: 't', updates: [{q: {_id: -1}, u: {$set: {z: '@documents'}}}]}", 4),
    shape("{update: 't', updates: [{q: {_id: -1}, u: {z: '@documents'}}]}", 4),
    shape("{update: 't', updates: [{q: {_id: -1}, u: {$push: {z: {$each: '@ints'}}}}]}", 4),
    shape("{update: 't', updates: [{q: {_id: -1}, u: {$addToSet: {z: {$each: '@ints'}}}}]}", 17),
    shape("{update: 't', updates: [{q: {_id: -1}, u: {$pull: {z: {$in: '@ints'}}}}]}", 15),
    shape("{update: 't', updates: [{q: {_id: -1}, u: {$pull: {z: {$or: '@equalities'}}}}]}", 22),
    shape("{update: 't', updates: [{q: {_id: -1}, u: {$pullAll: {z: '@ints'}}}]}", 19),
    shape(
        "{update: 't', updates: [{q: {_id: -1}, u: {$set: {'z.$[e]': 1}}, arrayFilters: [{e: {$in: '@ints'}}]}]}",
        15,
    ),
    shape("{update: 't', updates: [{q: {_id: -1}, u: [{$set: '@sums'}]}]}", 18),
    shape("{update: 't', updates: [{q: {_id: -1}, u: [{$set: {z: '$$c'}}], c: {c: '@documents'}}]}", 4),
    // Most of this is a table of the engine, which does not grow with the request.
    shape("{update: 't', updates: '@updates'}", 400),
    shape("{findAndModify: 't', query: {a: {$in: '@ints'}}, update: {$set: {c: 1}}}", 10),
    shape("{findAndModify: 't', query: {_id: -1}, update: {$set: '@ones'}, fields: '@ones'}", 37),
    shape("{bulkWrite: 1, ops: [{delete: 0, filter: {a: {$in: '@ints'}}}], nsInfo: [{ns: 'test.t'}]}", 13),
    shape("{create: 'v', validator: {$or: '@equalities'}}", 40),
    shape("{create: 'v', validator: {$jsonSchema: {properties: '@schemas'}}}", 43),
    shape("{collMod: 't', validator: {a: {$in: '@ints'}}}", 29),
    shape(
        "{createIndexes: 't', indexes: [{key: {c: 1}, name: 'c_1', partialFilterExpression: {a: {$in: '@ints'}}}]}",
        30,
    ),
    shape(
        "{mapReduce: 't', map: 'function() {}', reduce: 'function() {}', out: {inline: 1}, query: {a: {$in: '@ints'}}}",
        26,
    ),
];

/// On a busy machine any command may be slow, and its log line would then count as its memory.
const UNNOTED: &str = "{profile: 0, slowms: 1000000000}";
/// Each command has a log line and an entry in `system.profile`.
const NOTED: &str = "{profile: 2, slowms: -1}";

fn server(limits: MemoryLimits, profile: &str) -> Server {
    let mut server = Server::start_within(&ENGINES[0], &EngineOptions::default(), LogOptions::default(), limits);
    for command in [
        "{create: 't'}",
        "{createIndexes: 't', indexes: [{key: {a: 1}, name: 'a'}, {key: {a: 1, b: 1}, name: 'ab'}, {key: {b: 1}, name: 'b'}, \
         {key: {c: 1}, name: 'c'}, {key: {x: 'text'}, name: 'x'}, {key: {p: '2dsphere'}, name: 'p'}]}",
        "{insert: 't', documents: [{_id: 1, a: 1, b: 2, c: 3, x: 'word', z: [1, 2]}, {_id: 2, a: 2, b: 2}]}",
        profile,
    ] {
        let command = shell::parse_document(command).expect("a command");
        let reply = server.run(1, "test", command.as_ref());
        assert_eq!(integer(&reply, "ok"), Some(1), "{reply:?}");
    }
    server
}

fn integer(reply: &DocumentBuf, name: &str) -> Option<i64> {
    reply.as_ref().get(name).and_then(number::as_i64_exact)
}

/// The code of a reply, or of its first write error; 0 on success.
fn code(reply: &DocumentBuf) -> i64 {
    let reply = reply.as_ref();
    let first = reply.get("writeErrors").and_then(|errors| errors.as_array()?.get(0)?.as_document()?.get("code"));
    first.or(reply.get("code")).and_then(number::as_i64_exact).unwrap_or(0)
}

struct Measured {
    template: &'static str,
    sent_bytes: usize,
    peak_bytes: usize,
    code: i64,
}

fn measured(bytes: usize, limits: MemoryLimits, profile: &str) -> Vec<Measured> {
    let mut server = server(limits, profile);
    let measure = |shape: &Shape| {
        let command = command(shape.command, bytes);
        let database = if command.as_ref().first_name() == Some("bulkWrite") { "admin" } else { "test" };
        let (peak_bytes, reply) = peak_bytes(|| server.run(1, database, command.as_ref()));
        let sent_bytes = command.as_ref().len_bytes();
        if code(&reply) == 0 && command.as_ref().first_name() == Some("create") {
            let drop = shell::parse_document("{drop: 'v'}").expect("a command");
            server.run(1, "test", drop.as_ref());
        }
        Measured { template: shape.command, sent_bytes, peak_bytes, code: code(&reply) }
    };
    SHAPES.iter().map(measure).collect()
}

#[test]
fn memory_of_a_request_is_within_a_factor_of_its_bytes() {
    let measured = measured(MEASURED_BYTES, MemoryLimits::none(), UNNOTED);
    let mut beyond = Vec::new();
    for (shape, measured) in SHAPES.iter().zip(&measured) {
        let factor = measured.peak_bytes.div_ceil(measured.sent_bytes);
        eprintln!("{factor:4} times, code {:6}: {}", measured.code, measured.template);
        if factor > shape.factor_max {
            beyond.push(format!("{factor} times what was sent, not {}: {}", shape.factor_max, shape.command));
        }
    }
    assert!(beyond.is_empty(), "{}", beyond.join("\n"));
}

/// Requests that take much more where they are noted, with the bytes.
fn beyond_noted() -> Vec<String> {
    let limits = MemoryLimits::none;
    let pairs = measured(MEASURED_BYTES, limits(), UNNOTED).into_iter().zip(measured(MEASURED_BYTES, limits(), NOTED));
    let mut beyond = Vec::new();
    for (unnoted, noted) in pairs {
        let more = noted.peak_bytes.saturating_sub(unnoted.peak_bytes);
        eprintln!("{:4} times more: {}", more.div_ceil(noted.sent_bytes), noted.template);
        // A copy of the command, the stages of its plan, and the engine's memory for an entry.
        if more > NOTE_BYTES_MAX {
            eprintln!("{more} bytes more: {}", noted.template);
            beyond.push(noted.template.to_owned());
        }
    }
    beyond
}

/// A request counts only if it takes much more in each of three rounds: on a busy machine, memory of a moment may fall
/// into one measurement and not into the other.
#[test]
fn a_request_that_is_noted_takes_little_more() {
    let mut beyond = beyond_noted();
    for _ in 0..2 {
        if !beyond.is_empty() {
            let again = beyond_noted();
            beyond.retain(|template| again.contains(template));
        }
    }
    assert!(beyond.is_empty(), "{}", beyond.join("\n"));
}

#[test]
fn a_request_is_refused_before_it_takes_more_than_there_is() {
    let limits = MemoryLimits { server: ServerMemory::new(BUDGET_BYTES as u64), ..MemoryLimits::none() };
    let mut beyond = Vec::new();
    for Measured { template, sent_bytes, peak_bytes, code } in measured(LARGE_BYTES, limits, UNNOTED) {
        // Up to three copies of the request may be made between two checks, and a list doubles when it grows.
        if peak_bytes > BUDGET_BYTES + 3 * sent_bytes {
            beyond.push(format!("{peak_bytes} bytes, code {code}: {template}"));
        }
    }
    assert!(beyond.is_empty(), "of a budget of {BUDGET_BYTES} bytes were taken:\n{}", beyond.join("\n"));
}
