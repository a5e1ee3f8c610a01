//! Moves a `$sort` before stages that make several documents of one: `$unwind`, and `$lookup` that unwinds its array.
//!
//! **Proof.** The stage looks at one document at a time, and the documents that it makes of one follow each other and
//! have its values at the paths of the sort, each of which has an exact origin. So they come in the order of the sort.
//! Documents with equal keys have no defined order.
//!
//! A `$limit` after the sort stays after the stage. It is copied before the stage if the stage makes at least one
//! document of each: then the first `n` documents are made of the first `n`. If the stage may drop documents, a sort with
//! a limit stays: it would have to keep all documents.
//!
//! **Errors.** A sort by several paths fails for a document with arrays at two of them, which the stage may drop. So it
//! moves only before a stage that drops none.

use super::logical::LogicalStage;
use super::moving_sort::{MovingSort, Passed};
use super::{Effect, Kind, Rule};
use bunko_matcher::planted::{Fault, active};

pub(super) const RULE: Rule = Rule { name: "sortBeforeUnwind", kind: Kind::Order(passage) };

fn passage(stage: &mut LogicalStage, sort: &MovingSort) -> Option<Passed> {
    let keeps_each = stage.stage.unwinding().is_some_and(|unwinding| unwinding.preserves_without_elements());
    let (changes, keeps_each) = match stage.effect() {
        Effect::Unwinds(changes) => (changes, keeps_each),
        Effect::Joins(joined) => (&joined.changes, joined.side.as_ref().is_some_and(|side| side.keeps_unmatched)),
        _ => return None,
    };
    let keeps_each = keeps_each || active(Fault::UnwindKeepsEach);
    let may_move = keeps_each || sort.paths.len() == 1 && sort.limit.is_none();
    if may_move { Some(Passed::WithoutCuts(sort.origins(changes)?)) } else { None }
}
