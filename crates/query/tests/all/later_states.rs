//! A plan answers for the state in which it is opened, also if the collection has changed since planning.

use crate::temporary::{Database, document, find_query};
use bunko_engines::ENGINES;
use bunko_query::plan;

/// The branches of the `$or` contend with the index of the condition beside it and win. The plan that the rules prefer
/// does not use the index that meets its first array, so it still holds when it is opened.
#[test]
fn the_branches_of_an_or_find_arrays_that_came_after_planning() {
    for engine in ENGINES {
        let database = Database::open(engine);
        let collection = database.collection("c");
        for key in ["{a: 1, d: 1}", "{b: 1}", "{c: 1}"] {
            database.index("c", &document(key), &document("{}")).expect("built");
        }
        for number in 0..400 {
            let text = format!("{{_id: {number}, a: {}, b: {number}, c: 1, d: {number}}}", 10 + number);
            database.insert("c", &text).expect("inserted");
        }
        let find = document("{filter: {c: {$in: [1, 2]}, $or: [{a: 3, d: {$gt: 1, $lt: 5}}, {b: 7}]}}");
        let planned = plan(&collection, find_query(find.as_ref()).expect("a find")).expect("a plan");
        assert!(planned.is_contested());
        database.insert("c", "{_id: 400, a: 3, b: 400, c: 1, d: [0, 9]}").expect("inserted");
        let mut execution = planned.open().expect("opened");
        let mut found = 0;
        while execution.next().expect("read").is_some() {
            found += 1;
        }
        assert_eq!(found, 2, "by {} on {}", execution.report().summary, engine.name);
    }
}
