//! Each fault that is planted in the rules turns the agreement of pipelines red.
//!
//! `BUNKO_PLANTED_TOLD=1` prints the pipelines that found each fault.

use super::{World, agree, generator, no_rule_hides_errors_that_mongodb_reports};
use bunko_aggregate::Rewrites;
use bunko_matcher::planted::{self, Fault, Guard};
use bunko_testkit::random::Random;

/// Collections that are tried for one fault, each with some pipelines.
const WORLDS: u64 = 1_000;
const PIPELINES: u64 = 20;
const PIPELINES_OF_COUNTS: u64 = 4;
const PIPELINES_OF_SORTS: u64 = 4;

/// Collections that find rare faults. They save time: if the generator changes, the fault is found in another one.
const FOUND_IN: &[(Fault, u64)] = &[
    (Fault::UnmatchedAlike, 56),
    (Fault::EqualsAnswerAlike, 69),
    (Fault::NestedCopyExact, 87),
    (Fault::ImpliedReplaces, 179),
    (Fault::GroupIgnoresOrder, 252),
    (Fault::EmptyMakesNothing, 331),
    (Fault::ImpliedNegated, 58),
    (Fault::OrderKeptByAll, 73),
    (Fault::SortPathsKept, 105),
    (Fault::PartitionUnwritten, 253),
    (Fault::PositionsKept, 616),
];

/// Removes from `hidden` the faults that the collection with this number finds.
fn look(number: u64, hidden: &mut Vec<Fault>) {
    let mut random = Random(number);
    let world = World::new(&mut random);
    let (mut of_counts, mut of_sorts) = (Random(number), Random(number));
    for drawn in 0..PIPELINES + PIPELINES_OF_COUNTS + PIPELINES_OF_SORTS {
        let stages = match drawn {
            0..PIPELINES => generator::pipeline(&mut random),
            drawn if drawn < PIPELINES + PIPELINES_OF_COUNTS => generator::counted(&mut of_counts),
            _ => generator::sorted_behind(&mut of_sorts),
        };
        let stages = stages.join(",\n ");
        let (sent, _) = world.run(&stages, Rewrites::Off);
        let is_place = planted::places_in(|| _ = world.run(&stages, Rewrites::Applied));
        hidden.retain(|fault| {
            let is_found = is_place(*fault)
                && planted::is_found(*fault, || agree(&world.run(&stages, Rewrites::Applied).0, &sent));
            if is_found && std::env::var_os("BUNKO_PLANTED_TOLD").is_some() {
                println!("(Fault::{fault:?}, {number}),");
            }
            !is_found
        });
    }
}

#[test]
fn each_planted_fault_turns_red_the_agreement_of_rules() {
    let mut hidden: Vec<_> = planted::guarded_by(Guard::Rewrites).collect();
    // Pipelines agree if a rule hides an error of a document that a filter drops, so another test finds these faults.
    let errors = || {
        no_rule_hides_errors_that_mongodb_reports();
        true
    };
    hidden.retain(|fault| {
        let hides = matches!(fault, Fault::SortErrorsHidden | Fault::RootlessDropped | Fault::FailingDropped);
        !(hides && planted::is_found(*fault, errors))
    });
    for (fault, number) in FOUND_IN {
        let mut own: Vec<_> = hidden.extract_if(.., |hidden| hidden == fault).collect();
        look(*number, &mut own);
        hidden.append(&mut own);
    }
    for number in 0..WORLDS {
        if hidden.is_empty() {
            return;
        }
        look(number, &mut hidden);
    }
    panic!("no pipeline finds {hidden:?}");
}
