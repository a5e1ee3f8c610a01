//! Moves a condition before `$graphLookup`.
//!
//! **Proof.** A result differs from its input only at or below the field `as`, and the search from a document does not
//! depend on other documents of the input.

use super::origin::of_path;
use super::{Condition, Effect, Kind, Passage, Rule};
use crate::Environment;

pub(super) const RULE: Rule = Rule { name: "matchBeforeGraphLookup", kind: Kind::Passage(passage) };

fn passage(effect: &Effect, condition: &Condition, _: &Environment) -> Option<Passage> {
    let Effect::Searches(changes) = effect else { return None };
    condition.equivalent(&|path| of_path(path, changes)).map(Passage::before)
}
