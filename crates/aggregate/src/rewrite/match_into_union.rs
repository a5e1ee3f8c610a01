//! Moves a condition that follows `$unionWith` into both of its inputs.
//!
//! **Proof.** The stage returns the documents of one input and then those of the other, unchanged. A condition looks at
//! one document at a time. Both pipelines have the same variables and the same string order. Metadata is read by
//! expressions alone, and those that read it do not move.

use super::origin::Origin;
use super::{Condition, Effect, Kind, Passage, Rule};
use crate::Environment;

pub(super) const RULE: Rule = Rule { name: "matchIntoUnion", kind: Kind::Passage(passage) };

fn passage(effect: &Effect, condition: &Condition, _: &Environment) -> Option<Passage> {
    if !matches!(effect, Effect::Unites) {
        return None;
    }
    let same = condition.equivalent(&|path| Origin::Exact(path.to_owned()))?;
    Some(Passage { before: Some(same.clone()), inside: Some(same), stays: false })
}
