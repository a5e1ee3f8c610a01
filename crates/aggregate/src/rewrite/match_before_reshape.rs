//! Moves a condition before `$project`, `$set`, `$addFields`, `$unset`, and before `$replaceRoot` with a document that
//! names its fields or adds some to `$$ROOT`.
//!
//! **Proof.** The stage makes one document of each, and looks at no other document. Let `p` be a path of the condition.
//!
//! - A top-level field that stays has the same value before and after the stage, so every condition on it or on a path
//!   below it has the same answer.
//! - `{b: '$k'}` gives `b` the value of `k`, and no `b` where `k` is missing: the condition is the same one on `k`. A
//!   path below it (`b.c`) becomes one below `k`; an array lies at the same place.
//! - `{b: '$k.m'}` gathers the `m` of all documents of an array `k` into an array `b`. A value that is found at `b`
//!   exists at `k.m`, so a condition that only a value without elements satisfies is implied. It is copied, and the
//!   exact one stays.
//! - Beside a nested path that is set or included (`a.b`, and the condition is on `a.c` or on `a.b` itself), values
//!   that are not documents are replaced or dropped. They have no `a.c`, so conditions that need a value have the same
//!   answer.
//! - A path that is computed, dropped, or contains a changed path has no origin.
//! - A number below such a nested path may be an index, which dropped values may shift. It has no origin.
//!
//! An expression of the stage that fails on documents that the condition excludes no longer does, as on MongoDB.

use super::condition::Proof;
use super::origin::of_path;
use super::{Condition, Effect, Kind, Passage, Rule};
use crate::Environment;

pub(super) const RULE: Rule = Rule { name: "matchBeforeReshape", kind: Kind::Passage(passage) };

fn passage(effect: &Effect, condition: &Condition, _: &Environment) -> Option<Passage> {
    let Effect::Reshapes(changes) = effect else { return None };
    let mapped = condition.mapped(&|path| of_path(path, changes))?;
    Some(match mapped.proof {
        Proof::Equivalent => Passage::before(mapped.condition),
        Proof::Implied => Passage::copied(mapped.condition),
    })
}
