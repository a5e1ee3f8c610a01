//! Documents are read in batches, and yet a query with a limit examines no more than it needs, and a cursor tells only
//! what its results so far took.

use crate::temporary::{Database, document, find_query};
use bunko_bson::DocumentBuf;
use bunko_catalog::Collection;
use bunko_engines::ENGINES;
use bunko_query::{ExecutionStatistics, Plan, plan};
use std::sync::Arc;

const DOCUMENTS: i32 = 1_500;

fn filled(database: &Database) -> Arc<Collection> {
    for number in 0..DOCUMENTS {
        let (a, b, c) = (number % 5, number * 7 % 11, number % 3);
        database.insert("c", &format!("{{_id: {number}, a: {a}, b: {b}, c: {c}, t: [{a}, {b}]}}")).expect("inserted");
    }
    for key in ["{a: 1, b: 1}", "{c: 1}", "{t: 1}"] {
        database.index("c", &document(key), &DocumentBuf::new()).expect("built");
    }
    database.collection("c")
}

/// The work of the first `count` results; of all if there are fewer.
fn work(plan: &Plan, count: usize) -> ExecutionStatistics {
    let mut execution = plan.open().expect("opened");
    for _ in 0..count {
        if execution.next().expect("read").is_none() {
            break;
        }
    }
    execution.statistics()
}

#[test]
fn a_limit_and_a_cursor_examine_what_their_results_need() {
    for engine in ENGINES {
        let database = Database::open(engine);
        let collection = filled(&database);
        let plans_of = |find: &str| {
            let planned = plan(&collection, find_query(document(find).as_ref()).expect("a find")).expect("a plan");
            if find.contains("c: 2") { planned.intersections().expect("planned") } else { vec![planned] }
        };
        for find in [
            "filter: {a: {$in: [1, 3, 4]}}, sort: {b: 1}",
            "filter: {a: {$in: [1, 3, 4]}, _id: {$mod: [2, 0]}}, sort: {b: -1}",
            "filter: {$or: [{a: 1}, {c: 1}]}",
            "filter: {t: {$gte: 9}}",
            "filter: {a: 1, c: 2}",
            "filter: {a: {$gte: 3}, c: 2}",
        ] {
            let whole = plans_of(&format!("{{{find}}}"));
            assert_eq!(whole.len(), 1, "{find}");
            for count in [1, 2, 3, 7, 40, 100] {
                let limited = plans_of(&format!("{{{find}, limit: {count}}}"));
                let (limited, taken) = (work(&limited[0], count + 1), work(&whole[0], count));
                assert_eq!(limited, taken, "{count} results of {find} on {}", engine.name);
                assert!(find.contains("$mod") || limited.docs_examined == count as u64, "{find}");
            }
        }
    }
}
