//! Two indexes whose values have few documents in common are read together, and documents are read for these alone.

use crate::found::{found, scanned};
use crate::temporary::{Database, document, find_query, find_query_of};
use bunko_bson::DocumentBuf;
use bunko_catalog::Collection;
use bunko_engines::ENGINES;
use bunko_errors::Failure;
use bunko_operation::{Gatherer, Interruption, MemoryLimits, OperationContext};
use bunko_query::{PlanChoice, QueryScope, count, plan};
use std::sync::Arc;

const DOCUMENTS: i32 = 6_000;

/// Large documents. `a` and `b` have twenty values each, and each pair of values is as frequent as every other; `same` is
/// `a` again; `rare` has five hundred values, `tags` holds arrays.
fn filled(database: &Database) -> Arc<Collection> {
    let collection = database.collection("c");
    for key in ["{a: 1}", "{b: -1}", "{same: 1}", "{rare: 1}", "{tags: 1}"] {
        database.index("c", &document(key), &DocumentBuf::new()).expect("built");
    }
    let text = "some words ".repeat(200);
    let document = |number: i32| {
        let tags = [number % 20, number % 17, 50].into_iter().collect::<bunko_bson::ArrayBuf>();
        DocumentBuf::new()
            .with("_id", number)
            .with("a", number % 20)
            .with("b", number / 20 % 20)
            .with("same", number % 20)
            .with("rare", number / 3 % 500)
            .with("tags", &tags)
            .with("text", text.as_str())
    };
    database.insert_all("c", (0..DOCUMENTS).map(document));
    collection
}

#[test]
fn documents_are_read_for_records_of_both_indexes() {
    for engine in ENGINES {
        let database = Database::open(engine);
        let collection = filled(&database);
        for filter in [
            "{a: 3, b: 4}",
            "{a: 3, b: 4, text: {$exists: true}}",
            "{b: 4, tags: 3}",
            "{a: 3, $expr: {$eq: ['$b', 4]}}",
            "{b: {$in: [4, 5]}, rare: {$gte: 40, $lt: 80}, a: {$lt: 10}}",
            "{a: 3, rare: {$gte: 40, $lt: 65}}",
        ] {
            for rest in ["", ", sort: {rare: -1}", ", needed: []"] {
                let both = found(&collection, &format!("{{filter: {filter}{rest}}}"));
                assert_eq!(both.records, scanned(&collection, filter), "{filter}{rest} on {}", engine.name);
                assert_eq!(both.choice, PlanChoice::Estimates, "{filter}{rest} on {}", engine.name);
                assert_eq!(both.summary.matches("IXSCAN").count(), 2, "{filter}{rest} by {}", both.summary);
                assert!(both.docs_examined < 60, "{filter}{rest} read {} documents", both.docs_examined);
            }
        }
        let query = |filter: &str| find_query(document(&format!("{{filter: {filter}}}")).as_ref()).expect("a find");
        assert_eq!(count(&collection, query("{a: 3, b: 4}")).expect("counted"), 15);
    }
}

/// A scan that is far behind the other seeks: it does not read the keys between.
#[test]
fn a_frequent_value_is_read_where_the_rare_one_is() {
    let database = Database::open(&ENGINES[0]);
    let collection = filled(&database);
    let query = find_query(document("{filter: {rare: 7, tags: 50}}").as_ref()).expect("a find");
    let planned = plan(&collection, query).expect("a plan");
    let intersections = planned.intersections().expect("planned");
    assert_eq!(intersections.len(), 1);
    let mut execution = intersections[0].open().expect("opened");
    let mut records = 0;
    while execution.next().expect("read").is_some() {
        records += 1;
    }
    let keys = execution.statistics().keys_examined;
    assert_eq!(records, scanned(&collection, "{rare: 7, tags: 50}").len());
    assert!(keys < 12 * records as u64, "{keys} keys for {records} documents");
}

/// Where the values of both indexes are always together, the intersection costs the keys of the second index, and the
/// answer stays.
#[test]
fn dependent_values_change_no_answer() {
    let database = Database::open(&ENGINES[0]);
    let collection = filled(&database);
    let both = found(&collection, "{filter: {a: 3, same: 3}}");
    assert_eq!(both.records, scanned(&collection, "{a: 3, same: 3}"));
    assert_eq!((both.docs_examined, both.keys_examined), (300, 600));
    assert!(found(&collection, "{filter: {a: 3, same: 4}}").records.is_empty());
}

struct Unhurried;

impl Interruption for Unhurried {
    fn reason(&self) -> Option<Failure> {
        None
    }
}

/// Records that do not fit into memory are looked up part by part.
#[test]
fn records_of_ranges_are_held_in_parts() {
    let database = Database::open(&ENGINES[0]);
    let collection = filled(&database);
    let filter = "{a: {$gte: 3, $lte: 6}, tags: {$lt: 6}, rare: {$gte: 100}}";
    let mut keys = Vec::new();
    for bytes_max in [1_000_000, 1_600] {
        let mut limits = MemoryLimits::none();
        limits.stages.set_bytes_max(Gatherer::Sort, bytes_max);
        let scope = QueryScope::new(0, OperationContext::new(Arc::new(Unhurried), limits));
        let query = find_query_of(document(&format!("{{filter: {filter}}}")).as_ref(), scope).expect("a find");
        for intersection in plan(&collection, query).expect("a plan").intersections().expect("planned") {
            let mut execution = intersection.open().expect("opened");
            let mut records = Vec::new();
            while let Some((record, _)) = execution.next_record().expect("read") {
                records.push(record.0);
            }
            records.sort_unstable();
            assert_eq!(records, scanned(&collection, filter), "{bytes_max} bytes");
            keys.push(execution.statistics().keys_examined);
        }
    }
    let (one_part, several) = keys.split_at(keys.len() / 2);
    assert_eq!(one_part.len(), 3);
    assert!(one_part.iter().zip(several).all(|(one, several)| one < several), "{one_part:?}, {several:?}");
}

/// Small documents cost no more than keys, and wide ranges have many records in common.
#[test]
fn other_queries_keep_one_index() {
    let database = Database::open(&ENGINES[0]);
    let collection = filled(&database);
    for find in [
        "{filter: {a: 3, b: {$gte: 4, $lt: 6}}}",
        "{filter: {a: 3, b: {$in: [4, 5]}}}",
        "{filter: {rare: 7, a: 3}}",
        "{filter: {a: 3, b: 4}, hint: 'a_1'}",
        "{filter: {a: 3, b: 4}, sort: {b: 1}, limit: 1}",
    ] {
        let summary = found(&collection, find).summary;
        assert_eq!(summary.matches("IXSCAN").count(), 1, "{find} by {summary}");
    }
}
