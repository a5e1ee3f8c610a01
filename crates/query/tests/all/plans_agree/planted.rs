//! Each fault that is planted in the planner turns the agreement of plans red.
//!
//! `BUNKO_PLANTED_TOLD=1` prints the scene that found each fault; `BUNKO_SEED` is the first scene tried.

use super::agreement::check_found;
use super::alternatives::scene_of_alternatives;
use super::{check_finds, check_scene, populate, scene, scene_of_arrays, scene_of_elements, scene_of_regions};
use crate::temporary::{self, Database};
use bunko_engines::ENGINES;
use bunko_matcher::planted::{self, Fault, Guard};
use bunko_operation::OperationContext;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Scenes that are tried for one fault.
const SCENES: u64 = 3_000;

/// The first of the scenes of conditions on elements, and the number of these that are tried.
const ELEMENTS: u64 = 1_000_000;
const SCENES_OF_ELEMENTS: u64 = 100;

/// The first of the scenes of alternatives, and the number of these that are tried.
const ALTERNATIVES: u64 = 2_000_000;
const SCENES_OF_ALTERNATIVES: u64 = 10;

/// The first of the scenes of arrays, and the number of these that are tried.
const ARRAYS: u64 = 3_000_000;
const SCENES_OF_ARRAYS: u64 = 100;

/// The first of the scenes of regions, and the number of these that are tried.
const REGIONS: u64 = 4_000_000;
const SCENES_OF_REGIONS: u64 = 100;

/// Scenes that find rare faults. They save time: if the generator changes, the fault is found in another one.
const FOUND_IN: &[(Fault, u64)] = &[
    (Fault::NullIsExactBelowArrays, 14),
    (Fault::InexactNegated, 15),
    (Fault::OneOfSeveralDecides, 15),
    (Fault::OrderOfStringsIgnored, 19),
    (Fault::CollatedCovered, 19),
    (Fault::SortsOtherStrings, 19),
    (Fault::EndsHaveRanges, 27),
    (Fault::ArrayHasOwnKey, 28),
    (Fault::PartsUnsplit, 43),
    (Fault::MissingNotBelowNull, 43),
    (Fault::ElementIsExact, 45),
    (Fault::SkipsAllOfPrefix, 55),
    (Fault::MergedAscending, 82),
    (Fault::MissingExists, 83),
    (Fault::ElementsDistinct, 98),
    (Fault::ExprBelowArrays, 109),
    (Fault::LongKeysDecide, 114),
    (Fault::ArraysCovered, 129),
    (Fault::PatternIsExact, 134),
    (Fault::DirectionsIgnored, 140),
    (Fault::LongKeysInRanges, 147),
    (Fault::RangesOfElementsJoined, 166),
    (Fault::RegexIsNoValue, 171),
    (Fault::CollatedKeysChecked, 219),
    (Fault::PatternsCollated, 219),
    (Fault::EqualsHaveOneHash, 258),
    (Fault::HashesChecked, 262),
    (Fault::DescendingIgnored, 278),
    (Fault::WildcardHoldsMissing, 320),
    (Fault::NullNeverExists, 389),
    (Fault::NanIsNoNumber, 483),
    (Fault::ArraysSort, 658),
    (Fault::ElementsOutsideSort, 658),
    (Fault::PositionHasBounds, 1362),
    (Fault::ChecksOfOtherBranch, 1931),
    (Fault::MergedScansDisjoint, 1998),
    (Fault::FirstNestedServes, ALTERNATIVES + 1),
    (Fault::BesideIsDecided, ALTERNATIVES + 9),
];

fn scene_of(number: u64) -> super::Scene {
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&number.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(Config { failure_persistence: None, ..Config::default() }, rng);
    match number {
        REGIONS.. => scene_of_regions().new_tree(&mut runner).expect("generated").current(),
        ARRAYS.. => scene_of_arrays().new_tree(&mut runner).expect("generated").current(),
        ALTERNATIVES.. => scene_of_alternatives().new_tree(&mut runner).expect("generated").current(),
        ELEMENTS.. => scene_of_elements().new_tree(&mut runner).expect("generated").current(),
        _ => scene().new_tree(&mut runner).expect("generated").current(),
    }
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
    let elements = ELEMENTS..ELEMENTS + SCENES_OF_ELEMENTS;
    let alternatives = ALTERNATIVES..ALTERNATIVES + SCENES_OF_ALTERNATIVES;
    let arrays = ARRAYS..ARRAYS + SCENES_OF_ARRAYS;
    for number in alternatives.chain(arrays).chain(elements).chain(first..first + SCENES) {
        if hidden.is_empty() {
            return;
        }
        look(&database, guard, number, &mut hidden);
    }
    panic!("no scene finds {hidden:?}");
}

/// The bounds beside a region are derived apart from those of other indexes.
#[test]
fn a_fault_of_arrays_turns_red_the_documents_that_regions_find() {
    let database = Database::open(&ENGINES[0]);
    let mut hidden = vec![Fault::ElementsNarrowTogether];
    let are_geospatial = |number: &u64| scene_of(*number).indexes.iter().all(|index| index.contains("'2d"));
    for number in (REGIONS..REGIONS + SCENES_OF_REGIONS).filter(are_geospatial) {
        look(&database, Guard::Plans, number, &mut hidden);
    }
    assert!(hidden.is_empty(), "no scene finds {hidden:?}");
}

#[test]
fn each_planted_fault_turns_red_the_documents_that_plans_find() {
    find_each(Guard::Plans);
}

#[test]
fn each_planted_fault_turns_red_the_values_that_plans_read() {
    find_each(Guard::Readings);
}
