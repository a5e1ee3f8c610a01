//! Moves a condition on the partition before `$densify` with bounds `partition`.
//!
//! **Proof.** With these bounds a partition is filled between its own least and greatest values, and documents that are
//! made have the partition's values. So a condition on the paths of `partitionByFields` that compares values accepts all
//! documents of a partition, made or not, or none. With other bounds the range, or the partition of an empty input,
//! depends on documents of other partitions: such a stage has no effect that a rule knows.

use super::match_before_window::within;
use super::{Condition, Effect, Kind, Passage, Rule};
use crate::Environment;

pub(super) const RULE: Rule = Rule { name: "matchBeforeDensify", kind: Kind::Passage(passage) };

fn passage(effect: &Effect, condition: &Condition, _: &Environment) -> Option<Passage> {
    let Effect::Densifies { by, changes } = effect else { return None };
    within(condition, by, changes).map(Passage::before)
}
