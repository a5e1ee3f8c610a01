//! Moves a condition on the partition before `$setWindowFields`, and so before `$fill`.
//!
//! **Proof.** A window lies within one partition. The condition must accept all documents of a partition or none. The
//! documents of a partition have equal values at the paths of `partitionBy`, so conditions that compare values pass, if
//! the stage does not write to these paths. The stage fails if a single path leads through an array, so arrays on the
//! way need no proof; in a document of paths an array may go unnoticed, so its nested paths do not count.

use super::origin::{Origin, below, of_path};
use super::{Condition, Effect, Kind, Passage, Rule};
use crate::Environment;
use bunko_expression::PathChanges;
use bunko_matcher::planted::{Fault, active};

pub(super) const RULE: Rule = Rule { name: "matchBeforeWindow", kind: Kind::Passage(passage) };

fn passage(effect: &Effect, condition: &Condition, _: &Environment) -> Option<Passage> {
    let Effect::Windows { by, changes } = effect else { return None };
    within(condition, by, changes).map(Passage::before)
}

/// The condition, if it accepts all documents of a partition or none.
pub(super) fn within(condition: &Condition, by: &[String], changes: &PathChanges) -> Option<Condition> {
    condition.equivalent(&|path| match of_path(path, changes) {
        Origin::Exact(source) if by.iter().any(|by| below(path, by).is_some()) => Origin::Equal(source),
        _ if active(Fault::PartitionUnwritten) && by.iter().any(|by| below(path, by).is_some()) => {
            Origin::Equal(path.to_owned())
        }
        _ => Origin::Unknown,
    })
}
