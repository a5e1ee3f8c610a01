//! The steps of planning stay within limits: few for the filters of applications, and a fixed number for hostile ones.
//!
//! `cargo bench -p bunko-query --bench planning` measures the processor time of these filters: a step takes about a tenth of
//! a microsecond. The limits here are those of the time, 3 and 15 microseconds and 50 milliseconds.

use crate::hostile_filters::{self, INDEXES};
use crate::planning_steps::explained;
use crate::temporary::{Database, document};
use bunko_catalog::Collection;
use bunko_engines::ENGINES;
use std::sync::Arc;

/// Steps of planning a find of a collection with one index, beside that on `_id`.
const STEPS_MAX_OF_ONE: usize = 30;
/// Steps of planning a find of a collection with twenty indexes.
const STEPS_MAX_OF_TWENTY: usize = 150;
/// Steps of planning any filter.
const STEPS_MAX: usize = 200_000;

fn steps_of(collection: &Arc<Collection>, find: &str) -> usize {
    explained(collection, find).1.planning_steps()
}

#[test]
fn usual_filters_take_few_steps() {
    let database = Database::open(&ENGINES[0]);
    let (one, many) = (database.collection("one"), database.collection("many"));
    database.index("one", &document("{f0: 1}"), &document("{}")).expect("built");
    for field in 0..20 {
        database.index("many", &document(&format!("{{f{field}: 1}}")), &document("{}")).expect("built");
    }
    let conditions = |count: usize| (0..count).map(|field| format!("f{field}: 1")).collect::<Vec<_>>().join(", ");
    for find in [
        "{filter: {f0: 1}}",
        "{filter: {f0: {$gte: 1, $lt: 5}, g: 'x'}, sort: {h: 1}}",
        "{filter: {f0: {$in: [1, 2, 3]}, g: {$ne: 1}}, sort: {f0: -1}, limit: 10}",
        "{filter: {$or: [{f0: 1}, {f0: 5, g: 1}], h: 1}}",
    ] {
        let steps = steps_of(&one, find);
        assert!((1..=STEPS_MAX_OF_ONE).contains(&steps), "{steps} steps for {find}");
    }
    for find in [
        format!("{{filter: {{{}}}}}", conditions(1)),
        format!("{{filter: {{{}}}}}", conditions(2)),
        format!("{{filter: {{{}}}, sort: {{f7: 1}}}}", conditions(8)),
        "{filter: {$or: [{f0: 1}, {f5: 5, g: 1}], f9: 1}}".to_owned(),
    ] {
        let steps = steps_of(&many, &find);
        assert!((1..=STEPS_MAX_OF_TWENTY).contains(&steps), "{steps} steps for {find}");
    }
}

#[test]
fn hostile_filters_end_within_the_limit_and_say_so() {
    let database = Database::open(&ENGINES[0]);
    let mut stopped = Vec::new();
    for (number, hostile) in hostile_filters::all().enumerate() {
        let name = format!("c{number}");
        let collection = database.collection(&name);
        for index in 0..INDEXES {
            let key = document(&(hostile.indexes)(index));
            database.index(&name, &key, &document(hostile.options)).expect("built");
        }
        let (planner, plan) = explained(&collection, &hostile.find);
        let steps = plan.planning_steps();
        println!("{}: {steps} steps{}", hostile.name, if plan.is_stopped() { ", stopped" } else { "" });
        assert!(steps <= STEPS_MAX, "{steps} steps for {}", hostile.name);
        let says_stopped = planner.as_ref().get("planningStopped").is_some();
        assert_eq!(says_stopped, plan.is_stopped(), "{}", hostile.name);
        stopped.extend(plan.is_stopped().then_some(hostile.name));
    }
    assert!(!stopped.is_empty() && stopped.len() < hostile_filters::all().count(), "{stopped:?}");
}
