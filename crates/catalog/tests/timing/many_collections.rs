//! The 20,000th collection costs as much as the first one.

use crate::alone;
use crate::opened;
use bunko_catalog::{Catalog, CreateOptions, Namespace};
use bunko_errors::ErrorCode;
use bunko_operation::OperationContext;
use std::time::{Duration, Instant};

const MANY: usize = 20_000;
const SOME: usize = 1_000;
/// Much more than the noise of the machine, and much less than a walk over all collections would cost.
const RATIO_MAX: u32 = 5;

fn namespace(number: usize) -> Namespace {
    Namespace::parse(&format!("db{}.c{number}", number % 200)).expect("a name")
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// The median times of the first 1,000 and of the last 1,000 of 20,000 steps.
fn first_and_last(mut step: impl FnMut(usize)) -> (Duration, Duration) {
    let timed = |number| {
        let began = Instant::now();
        step(number);
        began.elapsed()
    };
    let mut times: Vec<Duration> = (0..MANY).map(timed).collect();
    let last = times.split_off(MANY - SOME);
    times.truncate(SOME);
    (median(times), median(last))
}

fn names(catalog: &Catalog) -> Vec<String> {
    let databases = catalog.databases();
    let collections = databases.iter().flat_map(|database| catalog.collections(database));
    collections.map(|collection| collection.namespace().as_str().to_owned()).collect()
}

#[test]
fn the_last_of_many_collections_costs_what_the_first_does() {
    let _alone = alone();
    let engine = bunko_engines::find("lsm").expect("an engine of the table");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let operation = OperationContext::unlimited();
    let before = {
        let catalog = opened::open(directory.path(), engine);
        let mut uuids = Vec::new();
        let (first, last) = first_and_last(|number| {
            let create = CreateOptions { uuid: Some((number as u128).to_be_bytes()), ..CreateOptions::default() };
            let (collection, _) = catalog.create(&namespace(number), create, &*operation).expect("created");
            uuids.push(collection.uuid);
        });
        assert!(last < first * RATIO_MAX, "create: {last:?} after {first:?}");
        let found = catalog.collection_by_uuid(uuids[17]).expect("there");
        assert_eq!(*found.namespace(), namespace(17));
        let other_case = Namespace::parse("DB7.c").expect("a name");
        let failure = catalog.create(&other_case, CreateOptions::default(), &*operation).err().expect("refused");
        assert_eq!(failure.code(), ErrorCode::DATABASE_DIFFER_CASE);
        let names = names(&catalog);
        assert_eq!(names.len(), MANY);
        catalog.store().close().expect("closed");
        names
    };
    let catalog = opened::open(directory.path(), engine);
    assert_eq!(names(&catalog), before);
    let (first, last) =
        first_and_last(|number| assert!(catalog.drop_collection(&namespace(number), &*operation).is_ok()));
    assert!(last < first * RATIO_MAX && first < last * RATIO_MAX, "drop: {last:?} after {first:?}");
    assert!(catalog.databases().is_empty());
    let other_case = Namespace::parse("DB7.c").expect("a name");
    catalog.create(&other_case, CreateOptions::default(), &*operation).expect("nobody has it any more");
    catalog.store().close().expect("closed");
}
