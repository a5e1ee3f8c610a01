//! Copies a condition before `$redact`.
//!
//! **Proof.** `$redact` removes documents and documents inside them, and changes no other value. So a value without
//! fields or elements that is found after the stage existed before it, at the same path. A condition that only such a
//! value satisfies is implied; the exact one stays after the stage. Negations, null and `$exists: false` are not
//! implied: the value may have been removed. A number in the path may be the index in an array whose earlier elements
//! were removed.

use super::origin::{Origin, may_index};
use super::{Condition, Effect, Kind, Passage, Rule};
use crate::Environment;

pub(super) const RULE: Rule = Rule { name: "matchBeforeRedact", kind: Kind::Passage(passage) };

fn passage(effect: &Effect, condition: &Condition, _: &Environment) -> Option<Passage> {
    if !matches!(effect, Effect::Prunes) {
        return None;
    }
    let origin = |path: &str| if may_index(path) { Origin::Unknown } else { Origin::Implied(path.to_owned()) };
    condition.mapped(&origin).map(|mapped| Passage::copied(mapped.condition))
}
