//! Every plan gives the answer of a collection scan: random documents, indexes, filters and sorts, on each engine in
//! turn; also while other threads write, and while indexes are built and dropped.

mod agreement;
mod alternatives;
mod arrays;
mod filters;
mod groups;
mod meanwhile;
#[cfg(debug_assertions)]
mod planted;
mod reader;
mod regions;
mod scenes;
mod values;

use crate::temporary::{self, Database, document};
use agreement::{check, check_pairs, check_shown};
use alternatives::scene_of_alternatives;
use arrays::scene_of_arrays;
use bunko_catalog::Collection;
use bunko_engines::ENGINES;
use bunko_errors::Result;
use bunko_operation::OperationContext;
use filters::filter;
use groups::{
    check_distinct, check_ends_of_groups, check_extremes, check_firsts_in_groups, check_groups, check_several_in_groups,
};
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestRunner};
use reader::Reader;
use regions::scene_of_regions;
use scenes::{Find, Scene, pattern, populate, scene, scene_of_elements};
use std::sync::Arc;
use values::stored;

fn check_scene(collection: &Arc<Collection>, scene: &Scene) -> Result<()> {
    let (plain, collated) = (Reader::of_present(collection), Reader::collated(collection));
    for reader in std::iter::once(&plain).chain(&collated) {
        check_shown(reader, "{}")?;
        check_distinct(reader, "{}")?;
        check_groups(reader, "{}")?;
        check_ends_of_groups(reader, "{}")?;
        check_extremes(reader, "{}")?;
        check_firsts_in_groups(reader, "{}")?;
        check_several_in_groups(reader, "{}")?;
        check_pairs(reader)?;
    }
    check_finds(collection, scene, check)
}

/// Checks each find in its string order.
fn check_finds(
    collection: &Arc<Collection>,
    scene: &Scene,
    check: impl Fn(&Reader, &Find, Option<&str>) -> Result<()>,
) -> Result<()> {
    let (plain, collated) = (Reader::of_present(collection), Reader::collated(collection));
    scene.finds.iter().try_for_each(|find| {
        let reader = collated.as_ref().filter(|_| find.is_collated).unwrap_or(&plain);
        check(reader, find, find.sort.pattern(&scene.indexes).as_deref())
    })
}

#[test]
fn indexed_plans_answer_as_collection_scans_do() {
    check_scenes(scene(), 90);
}

#[test]
fn conditions_on_elements_answer_as_collection_scans_do() {
    check_scenes(scene_of_elements(), 40);
}

#[test]
fn alternatives_beside_other_conditions_answer_as_collection_scans_do() {
    check_scenes(scene_of_alternatives(), 40);
}

#[test]
fn fields_with_arrays_and_positions_answer_and_sort_as_collection_scans_do() {
    check_scenes(scene_of_arrays(), 60);
}

#[test]
fn regions_beside_other_conditions_answer_as_collection_scans_do() {
    check_scenes(scene_of_regions(), 60);
}

/// Checks generated scenes, as many as `PROPTEST_CASES` says.
fn check_scenes(scenes: impl Strategy<Value = Scene>, cases: u32) {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(cases);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let databases: Vec<_> = ENGINES.iter().map(Database::open).collect();
    let mut collections = 0;
    let numbers = std::cell::RefCell::new(&mut collections);
    runner
        .run(&scenes, |scene| {
            let (name, database) = {
                let mut number = numbers.borrow_mut();
                **number += 1;
                (format!("c{number}"), &databases[**number % databases.len()])
            };
            populate(database, &name, &scene);
            let collection = database.collection(&name);
            assert!(collection.validate(&*OperationContext::unlimited()).expect("validated").is_valid(), "{scene:?}");
            check_scene(&collection, &scene).expect("answered");
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
