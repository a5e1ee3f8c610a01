//! Each fault that is planted in the planner turns the agreement of plans red.
//!
//! `BUNKO_PLANTED_TOLD=1` prints the scene that found each fault; `BUNKO_SEED` is the first scene tried.

use super::agreement::check_found;
use super::{check_finds, check_scene, populate, scene};
use crate::temporary::{self, Database};
use bunko_engines::ENGINES;
use bunko_matcher::planted::{self, Fault, Guard};
use bunko_operation::OperationContext;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Scenes that are tried for one fault.
const SCENES: u64 = 1_500;

/// Scenes that find rare faults. They save time: if the generator changes, the fault is found in another one.
const FOUND_IN: &[(Fault, u64)] = &[
    (Fault::ArraysGrouped, 11),
    (Fault::NullIsExactBelowArrays, 14),
    (Fault::SparseHoldsAll, 14),
    (Fault::InclusiveEdgeLeftOut, 16),
    (Fault::EndsHaveRanges, 17),
    (Fault::GapsSort, 20),
    (Fault::PositionHasBounds, 25),
    (Fault::ExprBelowArrays, 41),
    (Fault::ArraysChecked, 41),
    (Fault::NullIsDistinct, 43),
    (Fault::NanHasRange, 47),
    (Fault::MergedAscending, 66),
    (Fault::PartsUnsplit, 66),
    (Fault::HashIsExact, 93),
    (Fault::ElementsNarrowTogether, 108),
    (Fault::ArraysSort, 109),
    (Fault::TypesCovered, 114),
    (Fault::ArrayHasOwnKey, 118),
    (Fault::MissingNotBelowNull, 153),
    (Fault::FirstInAnyOrder, 158),
    (Fault::WildcardHoldsMissing, 166),
    (Fault::OrderOfStringsIgnored, 184),
    (Fault::BranchesDecide, 200),
    (Fault::HashesChecked, 263),
    (Fault::DirectionsIgnored, 312),
    (Fault::NullNeverExists, 370),
    (Fault::MissingExists, 447),
    (Fault::PatternsCollated, 537),
];

fn scene_of(number: u64) -> super::Scene {
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&number.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(Config { failure_persistence: None, ..Config::default() }, rng);
    scene().new_tree(&mut runner).expect("generated").current()
}

/// Removes the faults that a scene finds.
fn look(database: &Database, guard: Guard, number: u64, hidden: &mut Vec<Fault>) {
    let (name, scene) = (format!("c{number}"), scene_of(number));
    populate(database, &name, &scene);
    let collection = database.collection(&name);
    let check = || match guard {
        Guard::Readings => check_scene(&collection, &scene),
        _ => check_finds(&collection, &scene, |reader, find, sort| check_found(reader, find, sort).map(drop)),
    };
    let is_place = planted::places_in(|| check().expect("answered"));
    hidden.retain(|fault| {
        let is_found = is_place(*fault) && planted::is_found(*fault, || check().is_ok());
        if is_found && std::env::var_os("BUNKO_PLANTED_TOLD").is_some() {
            println!("(Fault::{fault:?}, {number}),");
        }
        !is_found
    });
    let (namespace, operation) = (temporary::namespace(&name), OperationContext::unlimited());
    database.catalog.drop_collection(&namespace, &*operation).expect("dropped");
}

fn find_each(guard: Guard) {
    let database = Database::open(&ENGINES[0]);
    let mut hidden: Vec<_> = planted::guarded_by(guard).collect();
    for (fault, number) in FOUND_IN {
        let mut own: Vec<_> = hidden.extract_if(.., |hidden| hidden == fault).collect();
        if !own.is_empty() {
            look(&database, guard, *number, &mut own);
        }
        hidden.append(&mut own);
    }
    let first = std::env::var("BUNKO_SEED").map_or(0, |said| said.parse().expect("a number"));
    for number in first..first + SCENES {
        if hidden.is_empty() {
            return;
        }
        look(&database, guard, number, &mut hidden);
    }
    panic!("no scene finds {hidden:?}");
}

#[test]
fn each_planted_fault_turns_red_the_documents_that_plans_find() {
    find_each(Guard::Plans);
}

#[test]
fn each_planted_fault_turns_red_the_values_that_plans_read() {
    find_each(Guard::Readings);
}
