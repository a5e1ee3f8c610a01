//! Moves a condition before `$lookup`, also before one that unwinds its documents.
//!
//! **Proof.** As for `$unwind`: results differ from their input only below the field `as` and the field of the index, and
//! the documents that are joined do not depend on other documents of the input.

use super::origin::of_path;
use super::{Condition, Effect, Kind, Passage, Rule};
use crate::Environment;

pub(super) const RULE: Rule = Rule { name: "matchBeforeLookup", kind: Kind::Passage(passage) };

fn passage(effect: &Effect, condition: &Condition, _: &Environment) -> Option<Passage> {
    let Effect::Joins(joined) = effect else { return None };
    condition.equivalent(&|path| of_path(path, &joined.changes)).map(Passage::before)
}
