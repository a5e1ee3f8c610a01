//! Two indexes whose values have few documents in common are read together, and documents are read for these alone.

use crate::temporary::{Database, document, find_query, namespace};
use bunko_bson::DocumentBuf;
use bunko_catalog::{Collection, Order};
use bunko_engines::ENGINES;
use bunko_operation::OperationContext;
use bunko_query::{PlanChoice, count, plan};
use std::borrow::Cow;
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
    let documents: Vec<DocumentBuf> = (0..DOCUMENTS).map(document).collect();
    for some in documents.chunks(1_000) {
        let bytes: Vec<_> = some.iter().map(|document| Cow::Borrowed(document.as_ref().as_bytes())).collect();
        let unlimited = OperationContext::unlimited();
        database.catalog.insert(&namespace("c"), &bytes, Order::Ordered, &*unlimited).expect("inserted");
    }
    collection
}

/// The records of a find, the choice of its plan, and the documents and keys that it read.
struct Found {
    records: Vec<u64>,
    choice: PlanChoice,
    summary: String,
    docs_examined: u64,
    keys_examined: u64,
}

fn found(collection: &Arc<Collection>, find: &str) -> Found {
    let query = find_query(document(find).as_ref()).expect("a find");
    let mut execution = plan(collection, query).expect("a plan").open().expect("opened");
    let mut records = Vec::new();
    while let Some((record, _)) = execution.next_record().expect("read") {
        records.push(record.0);
    }
    records.sort_unstable();
    let statistics = execution.statistics();
    Found {
        records,
        choice: execution.choice(),
        summary: execution.report().summary,
        docs_examined: statistics.docs_examined,
        keys_examined: statistics.keys_examined,
    }
}

fn scanned(collection: &Arc<Collection>, filter: &str) -> Vec<u64> {
    found(collection, &format!("{{filter: {filter}, hint: {{$natural: 1}}}}")).records
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

/// Small documents cost no more than keys, and a range does not give its records in order.
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
