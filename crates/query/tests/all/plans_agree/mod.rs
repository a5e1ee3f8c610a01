//! Every plan gives the answer of a collection scan: random documents, indexes, filters and sorts, on each engine in
//! turn; also while other threads write, and while indexes are built and dropped.

mod agreement;
mod meanwhile;
mod reader;
mod scenes;

use crate::temporary::{self, Database, document};
use agreement::{check, check_distinct, check_ends_of_groups, check_groups, check_pairs};
use bunko_engines::ENGINES;
use bunko_errors::Result;
use bunko_operation::OperationContext;
use proptest::test_runner::{Config, TestRunner};
use reader::Reader;
use scenes::{Scene, filter, pattern, populate, scene, stored};

fn check_scene(reader: &Reader, scene: &Scene) -> Result<()> {
    check_distinct(reader, "{}")?;
    check_groups(reader, "{}")?;
    check_ends_of_groups(reader, "{}")?;
    check_pairs(reader)?;
    scene.finds.iter().try_for_each(|find| check(reader, find, find.sort.pattern(&scene.indexes).as_deref()))
}

#[test]
fn indexed_plans_answer_as_collection_scans_do() {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(150);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let databases: Vec<_> = ENGINES.iter().map(Database::open).collect();
    let mut collections = 0;
    let numbers = std::cell::RefCell::new(&mut collections);
    runner
        .run(&scene(), |scene| {
            let (name, database) = {
                let mut number = numbers.borrow_mut();
                **number += 1;
                (format!("c{number}"), &databases[**number % databases.len()])
            };
            populate(database, &name, &scene);
            let collection = database.collection(&name);
            assert!(collection.validate(&*OperationContext::unlimited()).expect("validated").is_valid(), "{scene:?}");
            check_scene(&Reader::of_present(&collection), &scene).expect("answered");
            database
                .catalog
                .drop_collection(&temporary::namespace(&name), &*OperationContext::unlimited())
                .expect("dropped");
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn the_generators_make_what_can_be_read() {
    let mut runner = TestRunner::new(Config { cases: 300, failure_persistence: None, ..Config::default() });
    runner
        .run(&(stored(), filter(), pattern()), |(stored, filter, pattern)| {
            document(&stored);
            let find = document(&format!("{{filter: {filter}, sort: {pattern}}}"));
            temporary::find_query(find.as_ref()).expect("a find");
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
}
