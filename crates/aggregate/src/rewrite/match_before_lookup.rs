//! Moves a condition before `$lookup`, with or without the `$unwind` of its field.
//!
//! **Proof.** Results differ from their input only at or below `as`, and at `includeArrayIndex`. The documents that are
//! joined do not depend on other documents of the input.

use super::origin::of_path;
use super::{Condition, Effect, Kind, Passage, Rule};
use crate::Environment;

pub(super) const RULE: Rule = Rule { name: "matchBeforeLookup", kind: Kind::Passage(passage) };

fn passage(effect: &Effect, condition: &Condition, _: &Environment) -> Option<Passage> {
    let Effect::Joins(joined) = effect else { return None };
    condition.equivalent(&|path| of_path(path, &joined.changes)).map(Passage::before)
}
