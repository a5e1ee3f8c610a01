//! Keys longer than the trees accept: every plan gives the answer of a collection scan, on each engine.

use crate::temporary::{Database, document, find_query};
use bunko_bson::{StringOrder, ValueRef};
use bunko_catalog::{Collection, Index};
use bunko_engines::ENGINES;
use bunko_errors::ErrorCode;
use bunko_expression::FieldPath;
use bunko_operation::OperationContext;
use bunko_query::{count, distinct, plan};
use std::sync::Arc;

/// Longer than the part that a shortened key keeps, and shorter than the maximum key.
const KEPT: usize = 59_985;

fn long(letter: &str, count: usize, end: &str) -> String {
    format!("'{}{end}'", letter.repeat(count))
}

/// Short values, long values whose keys are whole, and longer ones, several of them with a common prefix.
fn values() -> Vec<String> {
    vec![
        "1".to_owned(),
        "'m'".to_owned(),
        long("m", 59_960, ""),
        long("m", KEPT, ""),
        long("m", KEPT, "a"),
        long("m", 60_500, "a"),
        long("m", 60_500, "b"),
        long("m", 60_500, "c"),
        long("m", 70_000, ""),
        long("k", 60_100, ""),
        long("z", 60_100, "z"),
        format!("{{x: {}}}", long("q", 60_100, "")),
        "'z'".to_owned(),
    ]
}

/// The values at a path in the order of the answer, or the ids in any order.
fn told(collection: &Arc<Collection>, find: &str, path: &str) -> Vec<Vec<u8>> {
    let (plan_of, field) = (plan(collection, find_query(document(find).as_ref()).expect("a query")), path);
    let mut execution = plan_of.expect("a plan").open().expect("opened");
    let mut found = Vec::new();
    while let Some(document) = execution.next().expect("documents") {
        let field = FieldPath::parse(field).expect("a path");
        found.push(key_of(field.follow(ValueRef::Document(document)).or_null()));
    }
    found
}

fn key_of(value: ValueRef<'_>) -> Vec<u8> {
    let mut key = Vec::new();
    StringOrder::BYTES.append_key(&mut key, value, bunko_bson::key_string::Direction::Ascending);
    key
}

fn sorted(mut keys: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    keys.sort();
    keys
}

fn filled(engine: &bunko_engines::Entry) -> (Database, Arc<Collection>) {
    let database = Database::open(engine);
    for (key, options) in [
        ("{a: 1}", "{}"),
        ("{a: -1, b: 1}", "{}"),
        ("{b: 1, a: 1}", "{}"),
        ("{u: 1}", "{unique: true}"),
        ("{l: 1}", "{}"),
        ("{b: 'hashed', a: 1}", "{}"),
        ("{late: 1}", "{sparse: true}"),
    ] {
        database.index("c", &document(key), &document(options)).expect(key);
    }
    for (number, value) in values().iter().enumerate() {
        let (b, list) = (number % 3, if number % 2 == 0 { format!("[1, {value}]") } else { value.clone() });
        let text = format!("{{_id: {value}, a: {value}, b: {b}, u: {value}, l: {list}}}");
        database.insert("c", &text).expect("inserted");
        database
            .insert("c", &format!("{{_id: {}, a: {value}, b: {b}, l: {number}, u: {}}}", number + 10, number + 50))
            .expect("inserted");
    }
    let collection = database.collection("c");
    (database, collection)
}

fn indexes(collection: &Collection) -> Vec<Arc<Index>> {
    collection.ready_indexes().into_iter().filter(|index| !index.is_sparse).collect()
}

#[test]
fn every_plan_answers_as_a_scan_does() {
    for (place, engine) in ENGINES.iter().enumerate() {
        let (_database, collection) = filled(engine);
        assert!(collection.validate(&*OperationContext::unlimited()).expect("validated").is_valid());
        let values = values();
        for (number, value) in values.iter().enumerate() {
            let other = &values[(number + 3) % values.len()];
            let filters = [
                format!("{{a: {value}}}"),
                format!("{{a: {{$gt: {value}}}}}"),
                format!("{{a: {{$lte: {value}}}, b: 1}}"),
                format!("{{a: {{$in: [{value}, {other}]}}}}"),
                format!("{{a: {{$gte: {value}, $lt: {other}}}}}"),
                format!("{{l: {{$gt: {value}}}}}"),
                format!("{{u: {value}}}"),
                format!("{{_id: {value}}}"),
                format!("{{_id: {{$lt: {value}}}}}"),
                format!("{{_id: {{$in: [{value}, {other}]}}}}"),
                format!("{{$or: [{{a: {{$lt: {value}}}}}, {{u: {other}}}]}}"),
            ];
            // Each plan gets only some of the values: all combinations take minutes.
            for (turn, filter) in filters.iter().enumerate().filter(|(turn, _)| (turn + number + place) % 6 == 0) {
                let said = &filter[..40.min(filter.len())];
                let scanned = sorted(told(&collection, &format!("{{filter: {filter}, hint: {{$natural: 1}}}}"), "_id"));
                assert_eq!(sorted(told(&collection, &format!("{{filter: {filter}}}"), "_id")), scanned, "{said}");
                let query = find_query(document(&format!("{{filter: {filter}}}")).as_ref()).expect("a query");
                assert_eq!(count(&collection, query).expect("counted"), scanned.len() as u64, "counted {said}");
                for index in indexes(&collection).iter().skip((turn + number) % 2).step_by(2) {
                    let hinted = told(&collection, &format!("{{filter: {filter}, hint: '{}'}}", index.name), "_id");
                    assert_eq!(sorted(hinted), scanned, "{said} by {}", index.name);
                }
            }
        }
    }
}

#[test]
fn sorts_and_distinct_values_are_those_of_whole_values() {
    for engine in ENGINES {
        let (_database, collection) = filled(engine);
        for (path, sort) in
            [("a", "{a: 1}"), ("a", "{a: -1}"), ("_id", "{_id: 1}"), ("u", "{u: -1}"), ("a", "{b: 1, a: 1}")]
        {
            let scanned = told(&collection, &format!("{{sort: {sort}, hint: {{$natural: 1}}}}"), path);
            assert_eq!(told(&collection, &format!("{{sort: {sort}}}"), path), scanned, "{sort}");
            for index in indexes(&collection) {
                let hinted = told(&collection, &format!("{{sort: {sort}, hint: '{}'}}", index.name), path);
                assert_eq!(hinted, scanned, "{sort} by {}", index.name);
            }
        }
        for path in ["a", "u", "l", "_id"] {
            let told = |hint: &str| {
                let query = find_query(document(&format!("{{filter: {{}}{hint}}}")).as_ref()).expect("a query");
                let values = distinct(&collection, path, query).expect("distinct values");
                values.as_ref().iter().map(|value| key_of(value)).collect::<Vec<_>>()
            };
            let scanned = told(", hint: {$natural: 1}");
            assert_eq!(told(""), scanned, "{path}");
            for index in indexes(&collection) {
                assert_eq!(told(&format!(", hint: '{}'", index.name)), scanned, "{path} by {}", index.name);
            }
        }
    }
}

#[test]
fn covered_answers_hold_whole_values() {
    for engine in ENGINES {
        let (_database, collection) = filled(engine);
        let find = |hint: &str| {
            format!("{{filter: {{a: {{$gte: 'm'}}}}, hint: {hint}, projection: {{a: 1, _id: 0}}, needed: ['a']}}")
        };
        let scanned = sorted(told(&collection, &find("{$natural: 1}"), "a"));
        assert_eq!(sorted(told(&collection, &find("'a_1'"), "a")), scanned);
        assert!(scanned.iter().any(|key| key.len() > 60_000));
        let keys = format!("{{filter: {{a: {}}}, hint: 'a_1', returnKey: true}}", long("m", 60_500, "a"));
        let query = find_query(document(&keys).as_ref()).expect("a query");
        let failure = plan(&collection, query).expect("a plan").open().and_then(|mut open| open.next().map(drop));
        assert_eq!(failure.expect_err("a key that is not there").code(), ErrorCode::COMMAND_NOT_SUPPORTED);
    }
}

#[test]
fn whole_values_are_unique() {
    for engine in ENGINES {
        let (database, collection) = filled(engine);
        let value = long("m", 60_500, "b");
        for text in [format!("{{_id: {value}}}"), format!("{{_id: 'new', u: {value}}}")] {
            let failure = database.insert("c", &text).expect_err("a second one");
            assert_eq!(failure.code(), ErrorCode::DUPLICATE_KEY);
            let details = failure.details().to_owned();
            let key = details.as_ref().get("keyValue").and_then(ValueRef::as_document).expect("a key");
            let first = key.iter().next().expect("a field").value;
            assert_eq!(key_of(first), key_of(document(&format!("{{v: {value}}}")).as_ref().get("v").expect("v")));
        }
        database
            .insert("c", &format!("{{_id: {}, u: {}}}", long("m", 60_500, "d"), long("m", 60_500, "d")))
            .expect("new");
        // An index built later knows of its long keys too, and a unique build finds the duplicates among them.
        let failure = database.index("c", &document("{a: 1, b: 1}"), &document("{unique: true}")).expect_err("twice");
        assert_eq!(failure.code(), ErrorCode::DUPLICATE_KEY);
        database.index("c", &document("{u: 1, b: 1}"), &document("{sparse: true}")).expect("built");
        let built = collection.ready_indexes().into_iter().find(|index| index.name == "u_1_b_1").expect("built");
        assert!(built.multikey().types().has_long_keys());
        assert!(collection.validate(&*OperationContext::unlimited()).expect("validated").is_valid());
    }
}

#[test]
fn windows_are_of_whole_keys_or_refused() {
    for engine in ENGINES {
        let (_database, collection) = filled(engine);
        let window = |bound: &str| {
            let find = format!("{{hint: 'a_1', min: {{a: {bound}}}}}");
            let query = find_query(document(&find).as_ref()).expect("a query");
            let mut open = plan(&collection, query)?.open()?;
            let mut found = 0;
            while open.next()?.is_some() {
                found += 1;
            }
            Ok::<_, bunko_errors::Failure>(found)
        };
        let from_m = values().len() - 3;
        assert_eq!(window("'m'").expect("a short bound"), 2 * from_m + 2);
        let failure = window(&long("m", 60_500, "b")).expect_err("a bound among long keys");
        assert_eq!(failure.code(), ErrorCode::COMMAND_NOT_SUPPORTED);
    }
}

#[test]
fn an_id_may_fill_a_document() {
    for engine in ENGINES {
        let database = Database::open(engine);
        let text = format!("{{_id: {}}}", long("m", 15_000_000, ""));
        database.insert("c", &text).expect("inserted");
        assert_eq!(told(&database.collection("c"), &format!("{{filter: {text}}}"), "_id").len(), 1);
        assert_eq!(database.insert("c", &text).expect_err("twice").code(), ErrorCode::DUPLICATE_KEY);
    }
}

/// Wildcard indexes, alone and with other fields. Each index still knows of its long keys after the store is reopened.
#[test]
fn wildcards_answer_as_a_scan_does() {
    for engine in ENGINES {
        let database = Database::open(engine);
        for (key, options) in [
            ("{'$**': 1}", "{wildcardProjection: {w: 1}}"),
            ("{b: -1, 'x.$**': -1}", "{}"),
            ("{'x.$**': 1, c: 1}", "{}"),
        ] {
            database.index("c", &document(key), &document(options)).expect(key);
        }
        let (values, deep) = (values(), "n".repeat(61_000));
        for (number, value) in values.iter().enumerate() {
            let text = format!(
                "{{_id: {number}, w: {{v: [{value}, {number}], {deep}: {number}}}, b: {value}, x: {{y: {value}, {deep}: \
                 {value}}}, c: {value}}}"
            );
            database.insert("c", &text).expect("inserted");
        }
        let collection = database.collection("c");
        assert!(collection.validate(&*OperationContext::unlimited()).expect("validated").is_valid());
        for (number, value) in values.iter().enumerate() {
            let other = &values[(number + 5) % values.len()];
            for filter in [
                format!("{{'w.v': {value}}}"),
                format!("{{'w.v': {{$gte: {value}}}}}"),
                format!("{{'w.v': {{$in: [{value}, {other}]}}}}"),
                format!("{{'w.{deep}': {number}}}"),
                format!("{{'w.{deep}': {{$exists: true}}}}"),
                format!("{{b: {value}, 'x.y': {value}}}"),
                format!("{{b: {{$gt: {value}}}, 'x.y': {{$lte: {other}}}}}"),
                format!("{{'x.{deep}': {value}, b: {value}}}"),
                format!("{{'x.y': {value}, c: {value}}}"),
                format!("{{'x.{deep}': {{$lt: {value}}}, c: {{$gt: {other}}}}}"),
            ] {
                let said = &filter[..40.min(filter.len())];
                let scanned = sorted(told(&collection, &format!("{{filter: {filter}, hint: {{$natural: 1}}}}"), "_id"));
                assert_eq!(sorted(told(&collection, &format!("{{filter: {filter}}}"), "_id")), scanned, "{said}");
                let query = find_query(document(&format!("{{filter: {filter}}}")).as_ref()).expect("a query");
                assert_eq!(count(&collection, query).expect("counted"), scanned.len() as u64, "counted {said}");
            }
        }
    }
}

/// Text and geo indexes with another field, and indexes of words that are long themselves.
#[test]
fn texts_and_places_answer_as_a_scan_does() {
    for engine in ENGINES {
        let database = Database::open(engine);
        for key in ["{a: 1, said: 'text'}", "{at: '2dsphere', a: 1}", "{flat: '2d', a: -1}"] {
            database.index("c", &document(key), &document("{}")).expect(key);
        }
        let words = ["x".repeat(40_000) + "1", "x".repeat(40_000) + "2", "short".to_owned()];
        let values = ["1".to_owned(), long("m", 30_000, ""), long("m", 60_500, "a"), long("m", 60_500, "b")];
        let combinations: Vec<_> =
            values.iter().flat_map(|value| words.iter().map(move |word| (value, word))).collect();
        for (number, (value, word)) in combinations.iter().enumerate() {
            let at = format!("[{}, 1]", number % 3);
            let text = format!("{{_id: {number}, a: {value}, said: 'and {word} {number}', at: {at}, flat: {at}}}");
            database.insert("c", &text).expect("inserted");
        }
        let collection = database.collection("c");
        assert!(collection.validate(&*OperationContext::unlimited()).expect("validated").is_valid());
        let ids = |filter: &str| sorted(told(&collection, &format!("{{filter: {filter}}}"), "_id"));
        for (number, (value, word)) in combinations.iter().enumerate() {
            let filter = format!("{{a: {value}, $text: {{$search: '{word}'}}}}");
            assert_eq!(ids(&filter), [key_of(ValueRef::Int32(number as i32))], "document {number}");
        }
        for value in &values {
            for place in [
                "at: {$geoWithin: {$centerSphere: [[1, 1], 0.001]}}",
                "at: {$geoIntersects: {$geometry: {type: 'Point', coordinates: [2, 1]}}}",
                "flat: {$geoWithin: {$box: [[0, 0], [1, 2]]}}",
            ] {
                for condition in [value.clone(), format!("{{$gt: {value}}}"), format!("{{$lte: {value}}}")] {
                    let filter = format!("{{{place}, a: {condition}}}");
                    let scanned = told(&collection, &format!("{{filter: {filter}, hint: {{$natural: 1}}}}"), "_id");
                    assert_eq!(ids(&filter), sorted(scanned), "{place}");
                }
            }
            let near = format!("{{at: {{$near: {{$geometry: {{type: 'Point', coordinates: [0, 1]}}}}}}, a: {value}}}");
            assert_eq!(ids(&near), ids(&format!("{{a: {value}}}")));
        }
    }
}

/// Keys of a text index are long because of the fields after the texts.
#[test]
fn texts_before_long_values_answer_as_a_scan_does() {
    for engine in ENGINES {
        let database = Database::open(engine);
        database.index("c", &document("{said: 'text', a: 1}"), &document("{}")).expect("built");
        let values = ["1".to_owned(), long("m", 30_000, ""), long("m", 60_500, "a"), long("m", 60_500, "b")];
        for (number, value) in values.iter().enumerate() {
            database.insert("c", &format!("{{_id: {number}, said: 'words', a: {value}}}")).expect("inserted");
        }
        let collection = database.collection("c");
        let ids = |filter: &str| sorted(told(&collection, &format!("{{filter: {filter}}}"), "_id"));
        for value in &values {
            for condition in [value.clone(), format!("{{$gt: {value}}}"), format!("{{$lte: {value}}}")] {
                let searched = ids(&format!("{{a: {condition}, $text: {{$search: 'words'}}}}"));
                assert_eq!(searched, ids(&format!("{{a: {condition}}}")), "on {}", engine.name);
            }
        }
    }
}
