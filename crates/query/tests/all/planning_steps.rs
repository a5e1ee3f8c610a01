//! Planning ends after a number of steps or scans, and says so, whatever the filter and the indexes are.

use crate::temporary::{Database, document, find_query, find_query_of};
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_catalog::Collection;
use bunko_engines::ENGINES;
use bunko_errors::{ErrorCode, Failure};
use bunko_operation::{Interruption, MemoryLimits, OperationContext};
use bunko_query::{Explained, FindQuery, Origin, Plan, QueryScope, Verbosity, explain_plan, plan};
use bunko_testkit::cpu_time::CpuTime;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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

/// An `$or` of this many alternatives.
fn alternatives(alternative: impl Fn(u64) -> String) -> String {
    format!("{{$or: [{}]}}", (0..ALTERNATIVES).map(alternative).collect::<Vec<_>>().join(", "))
}

/// The planner's part of an explanation, and the plan.
pub(crate) fn explained(collection: &Arc<Collection>, find: &str) -> (DocumentBuf, Plan) {
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
    planned_find(collection, &format!("{{filter: {filter}}}"))
}

/// As [`planned`], for a find with other fields.
fn planned_find(collection: &Arc<Collection>, find: &str) -> (usize, bool, bool) {
    let (planner, plan) = explained(collection, find);
    let mut execution = plan.open().expect("opened");
    let mut found = 0;
    while execution.next().expect("read").is_some() {
        found += 1;
    }
    (found, planner.as_ref().get("planningStopped").is_some(), plan.uses_index())
}

#[test]
fn many_alternatives_with_many_indexes_use_the_best_index_that_was_compared() {
    let database = Database::open(&ENGINES[0]);
    let pairs = alternatives(|number| format!("{{a: {number}, b: {}}}", 2 * number));
    let of_a = (0..63).map(|number| format!("{{a: 1, f{number}: 1}}"));
    let many = collection(&database, "many", of_a);
    assert_eq!(planned(&many, &pairs), (15, true, true));
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
fn many_conditions_on_one_element_with_many_indexes_use_the_best_index_that_was_compared() {
    let database = Database::open(&ENGINES[0]);
    let conditions: Vec<_> = (0..ALTERNATIVES).map(|number| format!("f{number}: 1")).collect();
    let of_element = (0..63).map(|number| format!("{{'a.f0': 1, g{number}: 1}}"));
    let many = collection(&database, "many", of_element);
    assert_eq!(planned(&many, &format!("{{a: {{$elemMatch: {{{}}}}}}}", conditions.join(", "))), (0, true, true));
}

/// An operation that has to end after it has asked a number of times.
struct Ending {
    asked: AtomicUsize,
    last: AtomicUsize,
}

impl Interruption for Ending {
    fn reason(&self) -> Option<Failure> {
        let has_ended = self.asked.fetch_add(1, Ordering::Relaxed) >= self.last.load(Ordering::Relaxed);
        has_ended.then(|| Failure::new(ErrorCode::MAX_TIME_MS_EXPIRED, "operation exceeded time limit"))
    }
}

/// How often planning asks whether the operation must end, and the error if it must.
fn questions(collection: &Arc<Collection>, find: &str, last: usize) -> (usize, Option<ErrorCode>) {
    let find = document(find);
    let ending = Arc::new(Ending { asked: AtomicUsize::new(0), last: AtomicUsize::new(usize::MAX) });
    let scope = QueryScope::new(0, OperationContext::new(Arc::clone(&ending) as Arc<_>, MemoryLimits::none()));
    let query: FindQuery = find_query_of(find.as_ref(), scope).expect("a query");
    ending.asked.store(0, Ordering::Relaxed);
    ending.last.store(last, Ordering::Relaxed);
    let planned = plan(collection, query);
    (ending.asked.load(Ordering::Relaxed), planned.err().map(|failure| failure.code()))
}

#[test]
fn planning_ends_with_its_operation_whatever_the_hint() {
    let database = Database::open(&ENGINES[0]);
    let compound = (0..32).map(|number| format!("f{number}: 1")).collect::<Vec<_>>().join(", ");
    let collection = collection(&database, "c", ["{a: 1}".to_owned(), format!("{{{compound}}}")].into_iter());
    database.index("c", &document("{'$**': 1}"), &document("{}")).expect("built");
    let pairs = alternatives(|number| format!("{{a: {number}, b: {}}}", 2 * number));
    let conditions: Vec<_> = (0..ALTERNATIVES / 2).map(|number| format!("{{c: {{$ne: {number}}}}}")).collect();
    let conditions = format!("{{$and: [{}]}}", conditions.join(", "));
    for find in [
        format!("{{filter: {pairs}}}"),
        format!("{{filter: {pairs}, hint: {{'$**': 1}}}}"),
        format!("{{filter: {conditions}, hint: {{{compound}}}}}"),
    ] {
        let (asked, ended) = questions(&collection, &find, usize::MAX);
        assert!(asked > 2 && ended.is_none(), "{asked} {ended:?}, {}", &find[find.len() - 40..]);
        assert_eq!(questions(&collection, &find, 1).1, Some(ErrorCode::MAX_TIME_MS_EXPIRED));
    }
}

#[test]
fn a_hinted_index_is_scanned_whole_if_its_bounds_take_too_many_steps() {
    let database = Database::open(&ENGINES[0]);
    let compound = (0..32).map(|number| format!("f{number}: 1")).collect::<Vec<_>>().join(", ");
    let collection = collection(&database, "c", std::iter::once(format!("{{{compound}}}")));
    database.index("c", &document("{'$**': 1}"), &document("{}")).expect("built");
    let conditions: Vec<_> = (5..ALTERNATIVES).map(|number| format!("{{b: {{$ne: {number}}}}}")).collect();
    let filter = format!("{{$and: [{}]}}", conditions.join(", "));
    assert_eq!(planned_find(&collection, &format!("{{filter: {filter}, hint: {{{compound}}}}}")), (5, true, true));
    // Conditions on one path are examined once, and those on many paths for each path.
    let ranges: Vec<_> = (0..ALTERNATIVES).map(|number| format!("{{b: {{$gte: -{number}}}}}")).collect();
    let find = format!("{{filter: {{$and: [{}]}}, hint: {{'$**': 1}}}}", ranges.join(", "));
    assert_eq!(planned_find(&collection, &find), (30, false, true));
    let paths: Vec<_> = (0..ALTERNATIVES).map(|number| format!("{{'b{number}': {{$gte: 5}}}}")).collect();
    let find = format!("{{filter: {{$and: [{}]}}, hint: {{'$**': 1}}}}", paths.join(", "));
    assert_eq!(planned_find(&collection, &find), (0, true, false));
}

#[test]
fn many_alternatives_beside_a_condition_keep_an_index() {
    let database = Database::open(&ENGINES[0]);
    let keys = ["{a: 1, b: 1}", "{a: 1, c: 1}", "{b: 1}"].map(str::to_owned);
    let few = collection(&database, "few", keys.into_iter());
    let pairs = alternatives(|number| format!("{{b: {number}, a: {{$gte: 0}}}}"));
    let (found, _, uses_index) = planned(&few, &format!("{{a: {{$lt: 5}}, $and: [{pairs}]}}"));
    assert_eq!((found, uses_index), (10, true));
    let of_a = (0..60).map(|number| format!("{{a: 1, f{number}: 1}}"));
    let many = collection(&database, "many", of_a);
    let (found, stopped, uses_index) = planned(&many, &format!("{{a: {{$lt: 5}}, $and: [{pairs}]}}"));
    assert_eq!((found, stopped, uses_index), (10, true, true));
}

/// Each branch would have a key for each value of the list.
#[test]
fn a_long_list_beside_many_alternatives_is_not_copied_into_each() {
    let database = Database::open(&ENGINES[0]);
    let collection = collection(&database, "c", std::iter::once("{b: 1, a: 1}".to_owned()));
    let list = (0..ALTERNATIVES).map(|number| number.to_string()).collect::<Vec<_>>().join(", ");
    let pairs = alternatives(|number| format!("{{a: {number}, _id: {}}}", 2 * number));
    assert_eq!(planned(&collection, &format!("{{b: {{$in: [{list}]}}, $and: [{pairs}]}}")), (15, true, true));
}

/// Covering a region takes longer than bounds on values do.
#[test]
fn very_many_regions_are_not_all_covered() {
    let database = Database::open(&ENGINES[0]);
    let collection = collection(&database, "c", std::iter::once("{place: '2dsphere'}".to_owned()));
    let regions = |count: u64| {
        let region = |number: u64| {
            format!(
                "{{place: {{$geoWithin: {{$centerSphere: [[{}, {}], 0.01]}}}}, b: {number}}}",
                number % 90,
                number % 80
            )
        };
        planned(&collection, &format!("{{$or: [{}]}}", (0..count).map(region).collect::<Vec<_>>().join(", ")))
    };
    assert_eq!(regions(100), (0, false, true));
    assert_eq!(regions(5_000), (0, true, false));
}

/// A hashed index has other values than the filter, so each value of a list is hashed.
#[test]
fn a_list_that_is_too_long_to_be_hashed_leaves_the_index() {
    let database = Database::open(&ENGINES[0]);
    let collection = collection(&database, "c", std::iter::once("{a: 'hashed'}".to_owned()));
    let find = |count: usize| {
        let list = (0..count).map(|number| number.to_string()).collect::<Vec<_>>().join(", ");
        planned(&collection, &format!("{{a: {{$in: [{list}]}}}}"))
    };
    assert_eq!(find(20_000), (30, false, true));
    assert_eq!(find(150_000), (30, true, false));
}

#[test]
fn a_text_search_beside_many_alternatives_tests_all_documents() {
    let database = Database::open(&ENGINES[0]);
    let of_a = (0..60).map(|number| format!("{{a: 1, f{number}: 1}}"));
    let collection = collection(&database, "c", of_a);
    database.index("c", &document("{t: 'text'}"), &document("{}")).expect("built");
    database.insert("c", "{_id: 100, a: -1, t: 'word'}").expect("inserted");
    let pairs = (0..ALTERNATIVES).map(|number| format!("{{a: {number}, b: {}}}", 2 * number));
    let pairs = pairs.collect::<Vec<_>>().join(", ");
    let filter = format!("{{$or: [{{$text: {{$search: 'word'}}}}, {pairs}]}}");
    assert_eq!(planned(&collection, &filter), (16, true, true));
}

/// Twelve `$or`s of sixteen alternatives have more products than can be compared.
#[test]
fn products_of_alternatives_are_not_all_compared() {
    let database = Database::open(&ENGINES[0]);
    let keys =
        (0..12).flat_map(|one| (0..5).map(move |other| format!("{{f{one}: 1, f{}: 1}}", (one + other + 1) % 12)));
    let collection = collection(&database, "c", keys.chain(["{a: 1}".to_owned()]));
    let or = |path: usize| {
        let alternatives = (0..16).map(|value| format!("{{f{path}: {value}, g: {{$gte: {value}}}}}"));
        format!("{{$or: [{}]}}", alternatives.collect::<Vec<_>>().join(", "))
    };
    let product = (0..12).map(or).collect::<Vec<_>>().join(", ");
    let deep = (0..60).fold("{f0: 1, g: 1}".to_owned(), |inner, depth| {
        let (one, other) = (depth % 12, (depth + 5) % 12);
        format!("{{$and: [{{$or: [{{f{one}: 1}}, {inner}]}}, {{$or: [{{f{other}: 2}}, {{g: 3, f{one}: 1}}]}}]}}")
    });
    for filter in [format!("{{$and: [{product}]}}"), format!("{{a: 3, $and: [{product}]}}"), deep] {
        let began = CpuTime::now();
        let (found, _, uses_index) = planned(&collection, &filter);
        assert_eq!((found, uses_index), (0, true));
        assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
    }
}

/// Intersected one after the other, the gaps between the values took 20 seconds.
#[test]
fn many_excluded_values_are_planned_at_once() {
    let database = Database::open(&ENGINES[0]);
    let collection = collection(&database, "c", std::iter::once("{a: 1}".to_owned()));
    let list = |condition: &str| {
        let conditions =
            (0..ALTERNATIVES).map(|number| format!("{{a: {condition}}}").replace('N', &number.to_string()));
        conditions.collect::<Vec<_>>().join(", ")
    };
    let (unequal, equal) = (list("{$ne: N}"), list("N"));
    for filter in [format!("{{$and: [{unequal}]}}"), format!("{{$nor: [{equal}]}}")] {
        let began = CpuTime::now();
        assert_eq!(planned(&collection, &filter), (0, false, true));
        assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
    }
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
