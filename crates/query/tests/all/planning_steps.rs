//! Planning ends after a number of steps or scans, and says so, whatever the filter and the indexes are.

use crate::temporary::{Database, document, find_query};
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_catalog::Collection;
use bunko_engines::ENGINES;
use bunko_query::{Explained, Origin, Plan, Verbosity, explain_plan, plan};
use std::sync::Arc;
use std::time::Duration;

const ALTERNATIVES: u64 = 10_000;

/// A collection with these indexes, and documents that some of the alternatives match.
fn collection(database: &Database, name: &str, indexes: impl Iterator<Item = String>) -> Arc<Collection> {
    let collection = database.collection(name);
    for number in 0..30 {
        database.insert(name, &format!("{{_id: {number}, a: {}, b: {number}}}", number / 2)).expect("inserted");
    }
    for key in indexes {
        database.index(name, &document(&key), &document("{}")).expect("built");
    }
    collection
}

/// An `$or` of so many alternatives.
fn alternatives(alternative: impl Fn(u64) -> String) -> String {
    format!("{{$or: [{}]}}", (0..ALTERNATIVES).map(alternative).collect::<Vec<_>>().join(", "))
}

/// The planner's part of an explanation, and the plan.
fn explained(collection: &Arc<Collection>, find: &str) -> (DocumentBuf, Plan) {
    let mut query = find_query(document(find).as_ref()).expect("a query");
    query.simplify();
    let plan = plan(collection, query).expect("a plan");
    let explained = Explained {
        namespace: "test.c",
        query: plan.query(),
        verbosity: Verbosity::QueryPlanner,
        elapsed: Duration::ZERO,
        failure: None,
        origin: Origin::Query,
    };
    let reply = explain_plan(explained, Some(&plan), None);
    let planner = reply.as_ref().get("queryPlanner").and_then(ValueRef::as_document).expect("a planner's part");
    (planner.to_owned(), plan)
}

/// Number of documents found, whether planning stopped, and whether an index is used.
fn planned(collection: &Arc<Collection>, filter: &str) -> (usize, bool, bool) {
    let (planner, plan) = explained(collection, &format!("{{filter: {filter}}}"));
    let mut execution = plan.open().expect("opened");
    let mut found = 0;
    while execution.next().expect("read").is_some() {
        found += 1;
    }
    (found, planner.as_ref().get("planningStopped").is_some(), plan.uses_index())
}

#[test]
fn many_alternatives_with_many_indexes_are_scanned() {
    let database = Database::open(&ENGINES[0]);
    let pairs = alternatives(|number| format!("{{a: {number}, b: {}}}", 2 * number));
    let of_a = (0..63).map(|number| format!("{{a: 1, f{number}: 1}}"));
    let many = collection(&database, "many", of_a);
    assert_eq!(planned(&many, &pairs), (15, true, false));
    // A list is one condition.
    let equalities = alternatives(|number| format!("{{a: {number}}}"));
    assert_eq!(planned(&many, &equalities), (30, false, true));
}

#[test]
fn many_alternatives_with_few_indexes_that_may_serve_are_planned() {
    let database = Database::open(&ENGINES[0]);
    let pairs = alternatives(|number| format!("{{a: {number}, b: {}}}", 2 * number));
    let of_others = (0..62).map(|number| format!("{{f{number}: 1, a: 1}}"));
    let others = collection(&database, "others", of_others.chain(["{a: 1}".to_owned()]));
    assert_eq!(planned(&others, &pairs), (15, false, true));
}

#[test]
fn more_than_two_hundred_scans_are_sorted_and_not_merged() {
    let database = Database::open(&ENGINES[0]);
    let collection = collection(&database, "c", std::iter::once("{a: 1, b: 1, c: 1}".to_owned()));
    let planned = |values: usize| {
        let list = (0..values).map(|value| value.to_string()).collect::<Vec<_>>().join(", ");
        let find = format!("{{filter: {{a: {{$in: [{list}]}}, b: {{$in: [{list}]}}}}, sort: {{c: 1}}}}");
        let (planner, _) = explained(&collection, &find);
        let winning = planner.as_ref().get("winningPlan").and_then(ValueRef::as_document).expect("a plan");
        let stage = winning.get("stage").and_then(ValueRef::as_str).expect("a name").to_owned();
        (stage, matches!(planner.as_ref().get("maxScansToExplodeReached"), Some(ValueRef::Boolean(true))))
    };
    assert_eq!(planned(14), ("FETCH".to_owned(), false));
    assert_eq!(planned(15), ("SORT".to_owned(), true));
}
