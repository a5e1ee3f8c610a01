//! Moves a condition before `$unwind` of another field.
//!
//! **Proof.** Each result differs from its input only at the path and at the path of the index, and no other documents
//! are looked at. So a condition on other top-level fields holds for all results of a document or for none. Conditions
//! below the same top-level field stay: the condition on an element that is an array differs from the one on the array
//! around it.

use super::origin::of_path;
use super::{Condition, Effect, Kind, Passage, Rule};
use crate::Environment;

pub(super) const RULE: Rule = Rule { name: "matchBeforeUnwind", kind: Kind::Passage(passage) };

fn passage(effect: &Effect, condition: &Condition, _: &Environment) -> Option<Passage> {
    let Effect::Unwinds(changes) = effect else { return None };
    condition.equivalent(&|path| of_path(path, changes)).map(Passage::before)
}
