//! A filter finds the same documents in every command: shown, counted, grouped, updated or deleted, by each index and
//! by none, alone and with other filters.
//!
//! `BUNKO_FILTERS` sets the number of filters.

use super::{DATABASE, World, parsed, setting};
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef, number};
use bunko_testkit::random::Random;
use bunko_testkit::shell;

const FILTERS: u64 = 40;
const DOCUMENTS: u64 = 90;

/// Indexes by name: first those that contain all documents, then those that contain some, so that a hint finds only
/// these.
const WHOLE: [&str; 6] = ["n", "op", "oqh", "s", "h", "hs"];
const SOME: [&str; 6] = ["sci", "w", "g", "place", "partial", "sparse"];

const INDEXES: &str = "{createIndexes: 'q', indexes: [
    {key: {n: 1}, name: 'n'}, {key: {'o.p': 1}, name: 'op'}, {key: {'o.q': -1, h: 1}, name: 'oqh'}, {key: {s: 1}, name: 's'},
    {key: {h: 'hashed'}, name: 'h'}, {key: {h: 'hashed', s: 1}, name: 'hs'},
    {key: {s: 1, n: 1}, name: 'sci', collation: {locale: 'en', strength: 2}}, {key: {'w.$**': 1}, name: 'w'},
    {key: {g: '2d'}, name: 'g'}, {key: {place: '2dsphere'}, name: 'place'},
    {key: {n: 1, s: 1}, name: 'partial', partialFilterExpression: {n: {$gt: 2}}}, {key: {x: 1}, name: 'sparse', sparse: true},
    {key: {t: 'text'}, name: 'text', default_language: 'none'}]}";

fn value(random: &mut Random) -> String {
    let values = [
        "1",
        "2",
        "3.0",
        "NumberLong(3)",
        "NumberDecimal('2.50')",
        "-0.0",
        "0",
        "NaN",
        "null",
        "undefined",
        "'a'",
        "'A'",
        "'b'",
        "[1, 3]",
        "[]",
        "[null]",
        "[[2]]",
        "{p: 1}",
        "{}",
        "true",
        "MinKey",
        "ISODate('2020-01-01T00:00:00Z')",
        "Infinity",
    ];
    random.pick(&values).to_owned()
}

fn words(random: &mut Random, count: u64) -> Vec<&'static str> {
    (0..count).map(|_| random.pick(&["apple", "Apple", "pear", "café", "Cafe", "plum", "fig"])).collect()
}

fn document(id: u64, random: &mut Random) -> String {
    let mut fields = vec![format!("_id: {id}")];
    let mut some = |chances: u64, random: &mut Random, field: &dyn Fn(&mut Random) -> String| {
        if !random.one_in(chances) {
            fields.push(field(random));
        }
    };
    some(4, random, &|random| format!("n: {}", value(random)));
    some(3, random, &|random| format!("s: '{}'", random.pick(&["a", "A", "b", "B", "ab", ""])));
    some(3, random, &|random| format!("h: {}", random.below(4)));
    some(2, random, &|random| format!("x: {}", value(random)));
    some(3, random, &|random| match random.below(3) {
        0 => format!("o: {{p: {}, q: {}}}", random.below(4), value(random)),
        1 => format!("o: [{{p: {}}}, {{q: {}}}, 5]", random.below(4), random.below(4)),
        _ => format!("o: {{p: [{}, {}]}}", random.below(4), random.below(4)),
    });
    some(3, random, &|random| format!("w: {{a: {}, b: {{c: {}}}}}", value(random), random.below(3)));
    some(3, random, &|random| format!("g: [{}, {}]", random.below(6), random.below(6)));
    let point = |random: &mut Random| {
        format!("place: {{type: 'Point', coordinates: [{}, {}]}}", random.below(6), random.below(6))
    };
    some(3, random, &point);
    some(4, random, &|random| {
        let count = 1 + random.below(4);
        format!("t: '{}'", words(random, count).join(" "))
    });
    format!("{{{}}}", fields.join(", "))
}

/// A text search.
fn search(random: &mut Random) -> String {
    let mut parts = Vec::new();
    for word in words(random, 3) {
        parts.push(match random.below(6) {
            0 | 1 => format!("-{word}"),
            2 => format!("\\\"{word} {}\\\"", words(random, 1)[0]),
            3 => format!("-\\\"{word} {}\\\"", words(random, 1)[0]),
            _ => word.to_owned(),
        });
    }
    let flags = random.pick(&["", "", ", $caseSensitive: true", ", $diacriticSensitive: true"]);
    format!("{{$text: {{$search: \"{}\"{flags}}}}}", parts.join(" "))
}

fn condition(random: &mut Random) -> String {
    let path = random.pick(&["n", "n", "s", "h", "x", "o.p", "o.q", "w.a", "w.b.c", "o"]);
    let number = random.below(4);
    match random.below(16) {
        0..=3 => format!("{{'{path}': {}}}", value(random)),
        4 => format!("{{'{path}': {{$gte: {number}, $lt: {}}}}}", number + 2),
        5 => format!("{{'{path}': {{$in: [{}, {}, {number}]}}}}", value(random), value(random)),
        6 => format!("{{'{path}': {{$ne: {}}}}}", value(random)),
        7 => format!("{{'{path}': {{$exists: {}}}}}", random.one_in(2)),
        8 => format!("{{'{path}': {{$type: '{}'}}}}", random.pick(&["number", "string", "null", "array", "object"])),
        9 => format!("{{'{path}': {{$regex: '{}'}}}}", random.pick(&["^a", "b", "^A$"])),
        10 => format!("{{'{path}': {{$mod: [2, {}]}}}}", number % 2),
        11 => format!("{{'{path}': {{$elemMatch: {{$gte: {number}}}}}}}"),
        12 => format!("{{g: {{$geoWithin: {{$box: [[0, 0], [{number}, 4]]}}}}}}"),
        13 => format!("{{place: {{$geoWithin: {{$centerSphere: [[2, 2], 0.0{}]}}}}}}", 2 + number),
        14 => format!("{{$jsonSchema: {{required: ['{path}']}}}}"),
        _ => format!("{{'{path}': {{$not: {{$gt: {number}}}}}}}"),
    }
}

/// A filter, usually with one condition.
fn filter(random: &mut Random) -> String {
    match random.below(10) {
        0..=2 => search(random),
        3 => format!("{{$and: [{}, {}]}}", search(random), condition(random)),
        4 => format!("{{$or: [{}, {}]}}", search(random), condition(random)),
        5 => format!("{{$or: [{}, {}]}}", condition(random), condition(random)),
        6 => format!("{{$and: [{}, {}]}}", condition(random), condition(random)),
        _ => condition(random),
    }
}

/// The result of one way: the documents, in no order, or their number.
#[derive(Clone, Debug, PartialEq)]
enum Said {
    Ids(Vec<String>),
    Count(i64),
}

impl Said {
    fn count(&self) -> i64 {
        match self {
            Self::Ids(ids) => ids.len() as i64,
            Self::Count(count) => *count,
        }
    }
}

/// Reads the result from a reply.
type Reading = fn(DocumentRef<'_>) -> Said;

fn batch(reply: DocumentRef<'_>) -> Vec<DocumentRef<'_>> {
    let cursor = reply.get("cursor").and_then(ValueRef::as_document).expect("a cursor");
    let batch = cursor.get("firstBatch").and_then(ValueRef::as_array).expect("a batch");
    batch.iter().filter_map(ValueRef::as_document).collect()
}

fn sorted(ids: impl Iterator<Item = String>) -> Said {
    let mut ids: Vec<_> = ids.collect();
    ids.sort();
    Said::Ids(ids)
}

fn shown_ids(reply: DocumentRef<'_>) -> Said {
    sorted(batch(reply).into_iter().map(|document| document.get("_id").map_or_else(String::new, shell::print)))
}

fn shown(reply: DocumentRef<'_>) -> Said {
    Said::Count(batch(reply).len() as i64)
}

/// The number in the reply's only document; 0 if there is no document.
fn told(reply: DocumentRef<'_>) -> Said {
    let batch = batch(reply);
    Said::Count(batch.first().and_then(|document| number::as_i64_exact(document.get("n")?)).unwrap_or(0))
}

fn told_in_facet(reply: DocumentRef<'_>) -> Said {
    let batch = batch(reply);
    let facet = batch.first().and_then(|document| document.get("f")?.as_array()).expect("a facet");
    let first = facet.iter().next().and_then(ValueRef::as_document);
    Said::Count(first.and_then(|document| number::as_i64_exact(document.get("n")?)).unwrap_or(0))
}

fn n(reply: DocumentRef<'_>) -> Said {
    Said::Count(reply.get("n").and_then(number::as_i64_exact).expect("n"))
}

fn values(reply: DocumentRef<'_>) -> Said {
    sorted(reply.get("values").and_then(ValueRef::as_array).expect("values").iter().map(shell::print))
}

fn explained(reply: DocumentRef<'_>) -> Said {
    let statistics = reply.get("executionStats").and_then(ValueRef::as_document).expect("statistics");
    Said::Count(statistics.get("nReturned").and_then(number::as_i64_exact).expect("nReturned"))
}

/// A command with placeholders: `FILTER`, and `OPTIONS` where a hint and a collation may stand.
struct Way {
    command: &'static str,
    reads: Reading,
}

const fn way(command: &'static str, reads: Reading) -> Way {
    Way { command, reads }
}

const WAYS: [Way; 16] = [
    way("{find: 'q', filter: FILTER, projection: {_id: 1}, batchSize: 1000 OPTIONS}", shown_ids),
    way("{find: 'q', filter: FILTER, sort: {_id: -1}, batchSize: 1000 OPTIONS}", shown_ids),
    way("{find: 'q', filter: FILTER, sort: {n: 1, _id: 1}, projection: {s: 1}, batchSize: 1000 OPTIONS}", shown_ids),
    way("{find: 'q', filter: FILTER, projection: {n: 1, _id: 0}, batchSize: 1000 OPTIONS}", shown),
    way("{count: 'q', query: FILTER OPTIONS}", n),
    way("{distinct: 'q', key: '_id', query: FILTER OPTIONS}", values),
    way("{explain: {find: 'q', filter: FILTER OPTIONS}, verbosity: 'executionStats'}", explained),
    way("{aggregate: 'q', pipeline: [{$match: FILTER}, {$count: 'n'}], cursor: {} OPTIONS}", told),
    way("{aggregate: 'q', pipeline: [{$match: FILTER}, {$group: {_id: 1, n: {$sum: 1}}}], cursor: {} OPTIONS}", told),
    way(
        "{aggregate: 'q', pipeline: [{$match: FILTER}, {$group: {_id: null, n: {$count: {}}}}], cursor: {} OPTIONS}",
        told,
    ),
    way(
        "{aggregate: 'q', pipeline: [{$match: FILTER}, {$facet: {f: [{$count: 'n'}]}}], cursor: {} OPTIONS}",
        told_in_facet,
    ),
    way(
        "{aggregate: 'q', pipeline: [{$match: FILTER}, {$group: {_id: '$_id'}}], cursor: {batchSize: 1000} OPTIONS}",
        shown_ids,
    ),
    way(
        "{aggregate: 'q', pipeline: [{$match: FILTER}, {$project: {_id: 1}}], cursor: {batchSize: 1000} OPTIONS}",
        shown_ids,
    ),
    way(
        "{aggregate: 'q', pipeline: [{$match: FILTER}, {$sort: {n: -1}}, {$group: {_id: '$_id'}}], cursor: {batchSize: 1000} OPTIONS}",
        shown_ids,
    ),
    way(
        "{aggregate: 'q', pipeline: [{$match: FILTER}, {$unionWith: {coll: 'none'}}, {$count: 'n'}], cursor: {} OPTIONS}",
        told,
    ),
    way("{update: 'q', updates: [{q: FILTER, u: {$unset: {nothing: 1}}, multi: true OPTIONS}]}", n),
];

/// Ways that skip two documents and return at most three.
const WINDOWS: [Way; 3] = [
    way("{find: 'q', filter: FILTER, skip: 2, limit: 3 OPTIONS}", shown),
    way("{count: 'q', query: FILTER, skip: 2, limit: 3 OPTIONS}", n),
    way(
        "{aggregate: 'q', pipeline: [{$match: FILTER}, {$skip: 2}, {$limit: 3}, {$count: 'n'}], cursor: {} OPTIONS}",
        told,
    ),
];

impl World {
    fn ask(&mut self, way: &Way, filter: &str, options: &str) -> Result<Said, i32> {
        let options = if options.is_empty() { String::new() } else { format!(", {options}") };
        let command = way.command.replace("FILTER", filter).replace("OPTIONS", &options);
        let reply = self.run(DATABASE, &parsed(&command))?;
        let errors = reply.as_ref().get("writeErrors").and_then(ValueRef::as_array);
        if let Some(error) = errors.and_then(|errors| errors.iter().next()?.as_document()) {
            return Err(error.get("code").and_then(number::as_i64_exact).expect("a code") as i32);
        }
        Ok((way.reads)(reply.as_ref()))
    }

    /// How many documents a delete in an aborted transaction deletes.
    fn deleted(&mut self, number: i64, filter: &str, options: &str) -> Result<Said, i32> {
        let options = if options.is_empty() { String::new() } else { format!(", {options}") };
        let id = DocumentBuf::new().with("id", ValueRef::Binary { subtype: 4, bytes: &[7; 16] });
        let in_transaction =
            |command: &str| parsed(command).with("lsid", &id).with("txnNumber", number).with("autocommit", false);
        let delete = format!("{{delete: 'q', deletes: [{{q: {filter}, limit: 0{options}}}], startTransaction: true}}");
        let deleted = self.run(DATABASE, &in_transaction(&delete));
        // After an error there is no transaction to abort.
        let _ = self.run("admin", &in_transaction("{abortTransaction: 1}"));
        let reply = deleted?;
        let errors = reply.as_ref().get("writeErrors").and_then(ValueRef::as_array);
        match errors.and_then(|errors| errors.iter().next()?.as_document()) {
            Some(error) => Err(error.get("code").and_then(number::as_i64_exact).expect("a code") as i32),
            None => Ok(n(reply.as_ref())),
        }
    }
}

/// All ways with these options must give one result, or all must fail.
fn check(world: &mut World, transaction: &mut i64, filter: &str, options: &str) -> Option<Said> {
    let first = world.ask(&WAYS[0], filter, options);
    for way in &WAYS[1..] {
        let said = world.ask(way, filter, options);
        let agrees = match (&first, &said) {
            (Ok(first @ Said::Ids(_)), Ok(said @ Said::Ids(_))) => first == said,
            (Ok(first), Ok(said)) => first.count() == said.count(),
            (Err(_), Err(_)) => true,
            _ => false,
        };
        assert!(agrees, "{filter} {options}:\n{}\n{said:?} instead of {first:?}", way.command);
    }
    *transaction += 1;
    let deleted = world.deleted(*transaction, filter, options).map(|said| said.count());
    assert_eq!(deleted.ok(), first.as_ref().ok().map(Said::count), "{filter} {options} deleted");
    let first = first.ok()?;
    for way in &WINDOWS {
        let said = world.ask(way, filter, options).map(|said| said.count());
        assert_eq!(said, Ok((first.count() - 2).clamp(0, 3)), "{filter} {options}:\n{}", way.command);
    }
    Some(first)
}

#[test]
fn every_way_of_asking_finds_the_same() {
    let (seed, count) = (setting("BUNKO_SEED", 20), setting("BUNKO_FILTERS", FILTERS));
    let mut world = World::start_with(&["--replSet", "rs", "--replSetHost", "127.0.0.1:1"]);
    let mut random = Random(seed);
    let mut all = ArrayBuf::new();
    (0..DOCUMENTS).for_each(|id| _ = all.push(&parsed(&document(id, &mut random))));
    world.insert("q", &all);
    world.succeed(DATABASE, &parsed(&INDEXES.replace('\n', " ")));
    let (mut transaction, mut found, mut refused) = (0, 0, 0);
    for _ in 0..count {
        let filter = filter(&mut random);
        if filter.contains("$text") {
            // `$text` allows no hint.
            match check(&mut world, &mut transaction, &filter, "") {
                Some(said) => found += u64::from(said.count() > 0),
                None => refused += 1,
            }
            continue;
        }
        let collation = if random.one_in(3) { "collation: {locale: 'en', strength: 2}" } else { "" };
        let with = |hint: &str| match (collation, hint) {
            ("", hint) => hint.to_owned(),
            (collation, "") => collation.to_owned(),
            (collation, hint) => format!("{collation}, {hint}"),
        };
        let scanned = check(&mut world, &mut transaction, &filter, &with("hint: {$natural: 1}"));
        let chosen = check(&mut world, &mut transaction, &filter, &with(""));
        assert_eq!(chosen, scanned, "{filter} {collation}");
        found += u64::from(scanned.as_ref().is_some_and(|said| said.count() > 0));
        for index in WHOLE {
            let hinted = check(&mut world, &mut transaction, &filter, &with(&format!("hint: '{index}'")));
            assert!(hinted.is_none() || hinted == scanned, "{filter} {collation} by {index}: {hinted:?}, {scanned:?}");
        }
        for index in SOME {
            check(&mut world, &mut transaction, &filter, &with(&format!("hint: '{index}'")));
        }
    }
    println!("{count} filters from seed {seed}; {found} found something, {refused} were refused");
    assert!(found * 3 > count && refused * 4 < count, "most of them find something");
}
