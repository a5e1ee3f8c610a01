//! Moves a condition that no document satisfies to the front, so that nothing is read.
//!
//! **Proof.** Nothing leaves the pipeline after such a condition. A stage that makes no documents of an empty input has
//! the same result if the condition stands before it. Stages that make documents of nothing (`$facet`, `$densify`) and
//! stages with documents of their own have no effect that passes here; `$unionWith` gets the condition in both inputs.
//! Errors on documents that would be dropped are hidden, as MongoDB hides them.

use super::{Condition, Effect, Kind, Passage, Rule};
use crate::Environment;
use bunko_matcher::planted::{Fault, active};

pub(super) const RULE: Rule = Rule { name: "moveNeverMatching", kind: Kind::Passage(passage) };

fn passage(effect: &Effect, condition: &Condition, _: &Environment) -> Option<Passage> {
    if !condition.is_never() {
        return None;
    }
    match effect {
        Effect::Opaque | Effect::Unites | Effect::Densifies { .. } if !active(Fault::EmptyMakesNothing) => None,
        _ => Some(Passage::before(Condition::never())),
    }
}
