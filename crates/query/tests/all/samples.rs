//! A sample of few of many documents reads few, and takes each document as often as every other, whatever gaps there are
//! between records.

use crate::temporary::{Database, document, find_query_of, namespace};
use bunko_bson::{ObjectId, Timestamp, number};
use bunko_catalog::Collection;
use bunko_catalog::stored_document::Stamps;
use bunko_engines::ENGINES;
use bunko_operation::OperationContext;
use bunko_query::write::{DeleteStatement, Writes};
use bunko_query::{QueryScope, plan};
use bunko_update::Targets;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

struct NoStamps;

impl Stamps for NoStamps {
    fn object_id(&self) -> ObjectId {
        ObjectId::from_parts(1, [0; 5], 1)
    }

    fn timestamp(&self) -> Timestamp {
        Timestamp { seconds: 1, increment: 1 }
    }
}

/// Number of documents that a sample wants.
const SIZE: u64 = 5;
const SAMPLES: usize = 3_000;

/// Chi square of 150 documents exceeds this in one of ten thousand runs. The random numbers are equal in every run.
const CHI_SQUARE_MAX: f64 = 218.0;

/// The documents that a plan yields for a sample, and the number of documents that it reads.
fn sampled(collection: &Arc<Collection>, operation: &Arc<OperationContext>) -> (Vec<i64>, u64) {
    let mut query = find_query_of(document("{}").as_ref(), QueryScope::new(0, Arc::clone(operation))).expect("a find");
    query.sampled = Some(SIZE);
    let mut execution = plan(collection, query).expect("a plan").open().expect("opened");
    let mut ids = Vec::new();
    while let Some(document) = execution.next().expect("read") {
        ids.push(document.get("_id").and_then(number::as_i64_exact).expect("a number"));
    }
    (ids, execution.statistics().docs_examined)
}

/// A collection with these documents, after all others below `count` were deleted.
fn collection_of(database: &Database, name: &str, count: i64, is_kept: &str) -> Arc<Collection> {
    let collection = database.collection(name);
    for id in 0..count {
        database.insert(name, &format!("{{_id: {id}}}")).expect("inserted");
    }
    let filter = document(&format!("{{$nor: [{is_kept}]}}"));
    let (namespace, scope) = (namespace(name), Arc::new(QueryScope::new(0, OperationContext::unlimited())));
    let mut writes = Writes::new(&database.catalog, &namespace, &NoStamps, scope);
    let statement = DeleteStatement { filter: filter.as_ref(), targets: Targets::Many, hint: None, strings: None };
    writes.delete(&statement).expect("deleted");
    collection
}

#[test]
fn a_sample_takes_each_document_as_often_and_reads_no_other() {
    for engine in ENGINES {
        let database = Database::open(engine);
        let collection =
            collection_of(&database, "c", 200, "{_id: {$mod: [4, 0]}}, {_id: {$mod: [4, 2]}}, {_id: {$mod: [4, 3]}}");
        let operation = OperationContext::unlimited();
        let mut times: BTreeMap<i64, usize> = BTreeMap::new();
        for _ in 0..SAMPLES {
            let (ids, read) = sampled(&collection, &operation);
            assert_eq!((ids.len() as u64, read), (SIZE, SIZE), "{}", engine.name);
            assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "no document comes twice");
            for id in ids {
                *times.entry(id).or_default() += 1;
            }
        }
        assert_eq!(times.len(), 150);
        let expected = SAMPLES as f64 * SIZE as f64 / 150.0;
        let chi_square: f64 = times.values().map(|times| (*times as f64 - expected).powi(2) / expected).sum();
        assert!(chi_square < CHI_SQUARE_MAX, "{}: {chi_square}", engine.name);
    }
}

#[test]
fn a_sample_of_records_far_apart_is_chosen_among_all() {
    let database = Database::open(&ENGINES[0]);
    let collection = collection_of(&database, "c", 15_000, "{_id: {$mod: [100, 7]}}");
    let operation = OperationContext::unlimited();
    let mut lengths = BTreeSet::new();
    for _ in 0..50 {
        let (ids, _) = sampled(&collection, &operation);
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "no document comes twice");
        lengths.insert(ids.len());
    }
    assert!(
        lengths.contains(&150) && lengths.iter().all(|length| [150, SIZE as usize].contains(length)),
        "{lengths:?}"
    );
}
