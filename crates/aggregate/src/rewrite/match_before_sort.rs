//! Moves a condition before `$sort`.
//!
//! **Proof.** A sort returns its documents unchanged, and their relative order does not depend on the other documents. A
//! sort without a following `$limit` keeps all of them; a `$limit` is a stage of its own, which no condition passes.

use super::origin::Origin;
use super::{Condition, Effect, Kind, Passage, Rule};
use crate::Environment;

pub(super) const RULE: Rule = Rule { name: "matchBeforeSort", kind: Kind::Passage(passage) };

fn passage(effect: &Effect, condition: &Condition, _: &Environment) -> Option<Passage> {
    if !matches!(effect, Effect::Orders) {
        return None;
    }
    condition.equivalent(&|path| Origin::Exact(path.to_owned())).map(Passage::before)
}
