//! Estimates choose among indexes without a trial where one is clearly cheaper, and never change an answer.

use crate::found::{Found, found, scanned};
use crate::temporary::{Database, document};
use bunko_bson::DocumentBuf;
use bunko_catalog::Collection;
use bunko_engines::ENGINES;
use bunko_operation::OperationContext;
use bunko_query::PlanChoice;
use std::sync::Arc;

/// `kind` has two values, one in one of a hundred documents; `code` is different in nearly every document; `tags` has
/// several elements.
fn filled(database: &Database, name: &str, count: i32) -> Arc<Collection> {
    let collection = database.collection(name);
    for key in ["{kind: 1}", "{code: 1}", "{tags: 1}", "{day: -1}"] {
        database.index(name, &document(key), &DocumentBuf::new()).expect("built");
    }
    add(database, name, 0..count);
    collection
}

fn add(database: &Database, name: &str, numbers: std::ops::Range<i32>) {
    let document = |number: i32| {
        let tags = [number % 5, number % 7].into_iter().collect::<bunko_bson::ArrayBuf>();
        DocumentBuf::new()
            .with("_id", number)
            .with("kind", i32::from(number % 100 == 0))
            .with("code", number / 2)
            .with("tags", &tags)
            .with("day", number % 365)
            .with("text", "some words that make the document longer than its keys")
    };
    database.insert_all(name, numbers.map(document));
}

const CLEAR: [&str; 5] = [
    "{kind: 0, code: 700}",
    "{code: {$in: [3, 4, 5]}, kind: 0}",
    "{kind: 0, code: {$gte: 20, $lt: 25}}",
    "{day: {$gt: 3}, code: 12}",
    "{tags: 0, code: {$lte: 4}}",
];

#[test]
fn the_clearly_cheaper_index_needs_no_trial() {
    for (engine, count) in ENGINES.iter().zip([20_000, 5_000, 5_000]) {
        let database = Database::open(engine);
        let collection = filled(&database, "c", count);
        for filter in CLEAR {
            let Found { records, choice, docs_examined, .. } = found(&collection, &format!("{{filter: {filter}}}"));
            assert_eq!(choice, PlanChoice::Estimates, "{filter} on {}", engine.name);
            assert_eq!(records, scanned(&collection, filter), "{filter} on {}", engine.name);
            assert!(docs_examined <= 20, "{filter} on {} read {docs_examined} documents", engine.name);
        }
        assert!(collection.plan_cache().all().is_empty(), "a choice by estimates is not cached");
    }
}

#[test]
fn samples_are_made_for_a_choice_alone() {
    let database = Database::open(&ENGINES[0]);
    let collection = filled(&database, "c", 2_000);
    let sampled = || collection.indexes().iter().filter(|index| index.sample().is_some()).count();
    for find in
        ["{filter: {_id: 7}}", "{filter: {kind: 1}}", "{filter: {text: 'no'}}", "{filter: {kind: 1, text: 'no'}}"]
    {
        found(&collection, find);
        assert_eq!(sampled(), 0, "{find}");
    }
    found(&collection, "{filter: {kind: 0, code: 7}}");
    assert_eq!(sampled(), 2);
    let small = filled(&database, "small", 500);
    assert_eq!(found(&small, "{filter: {kind: 0, code: 7}}").choice, PlanChoice::Trial);
    assert!(small.indexes().iter().all(|index| index.sample().is_none()));
}

/// Samples of other data make the planner choose badly; the answers stay.
#[test]
fn a_wrong_estimate_changes_no_answer() {
    let database = Database::open(&ENGINES[0]);
    let collection = filled(&database, "c", 3_000);
    let index = |name: &str| {
        let indexes = collection.indexes();
        Arc::clone(indexes.iter().find(|index| index.fields[0].path == name).expect("an index"))
    };
    let (kind, code) = (index("kind"), index("code"));
    let operation = OperationContext::unlimited();
    for index in [&kind, &code] {
        collection.index_sample(index, &operation).expect("sampled").expect("a sample");
    }
    // Each index now has the sample of the other: in `kind` nearly every value looks rare, in `code` nearly none.
    let (of_kind, of_code) = (kind.sample().expect("one"), code.sample().expect("one"));
    kind.set_sample(of_code);
    code.set_sample(of_kind);
    let mut worst = 0;
    for filter in
        [CLEAR[0], CLEAR[1], CLEAR[2], "{kind: 0, code: 0}", "{kind: 0, code: {$lt: 1}}", "{kind: 0, code: -1}"]
    {
        for rest in ["", ", limit: 2", ", sort: {day: 1}"] {
            let Found { records, choice, docs_examined, .. } =
                found(&collection, &format!("{{filter: {filter}{rest}}}"));
            let all = scanned(&collection, filter);
            if rest == ", limit: 2" {
                assert!(records.len() == all.len().min(2) && records.iter().all(|record| all.contains(record)));
            } else {
                assert_eq!(records, all, "{filter}{rest} by {choice:?}");
            }
            worst = worst.max(docs_examined);
        }
    }
    assert!(worst > 1_000, "the wrong samples made no plan worse");
}

/// A sample is renewed in the background once enough was written, and later plans use the new one.
#[test]
fn samples_follow_what_is_written() {
    let database = Database::open(&ENGINES[0]);
    let collection = filled(&database, "c", 2_000);
    let choose = || found(&collection, "{filter: {kind: 0, code: 7}}");
    choose();
    let code = Arc::clone(&collection.indexes()[2]);
    let first = code.sample().expect("a sample");
    choose();
    assert_eq!(code.sample().expect("a sample").version(), first.version(), "nothing was written");
    add(&database, "c", 10_000..18_000);
    while code.sample().expect("a sample").version() == first.version() {
        choose();
        std::thread::yield_now();
    }
    let renewed = code.sample().expect("a sample");
    assert_eq!((first.entries(), renewed.entries()), (2_000, 10_000));
    assert_eq!(renewed.distinct(), [5_000.0]);
}
