//! Moves a `$sort`, and the `$skip` and `$limit` stages right after it, before a stage that makes exactly one document
//! of each: `$lookup`, `$graphLookup`, `$set`, `$project` and their kin.
//!
//! **Proof.** The stage keeps the number and the order of documents and looks at one at a time. Each path of the sort
//! has an exact origin before it. So the stage's documents have the order of their inputs' values there, and the same
//! positions are dropped. Documents with equal keys have no defined order.
//!
//! **Errors.** The sort fails for the same documents, since arrays lie at the same places; a sort by two copies of one
//! field is not moved. Errors of the stage on dropped documents are hidden, as MongoDB hides them.

use super::logical::LogicalStage;
use super::moving_sort::{MovingSort, Passed};
use super::{Effect, Kind, Rule};

pub(super) const RULE: Rule = Rule { name: "sortBeforeReshape", kind: Kind::Order(passage) };

fn passage(stage: &mut LogicalStage, sort: &MovingSort) -> Option<Passed> {
    if !stage.stage.makes_one_of_each() {
        return None;
    }
    let changes = match stage.effect() {
        Effect::Reshapes(changes) | Effect::Searches(changes) => changes,
        Effect::Joins(joined) => &joined.changes,
        _ => return None,
    };
    Some(Passed::WithCuts(sort.origins(changes)?))
}
