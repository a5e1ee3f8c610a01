//! Drops a `$project`, `$set` or `$unset` after which documents are only counted.
//!
//! **Proof.** The stage makes exactly one document of each. After it come only stages whose number of results depends on
//! the number of their documents and not on what is in them (`$skip`, `$limit`, `$unionWith`), and then a stage that counts
//! all documents. So nothing reads what the stage changes.
//!
//! **Errors.** The stage fails for no document: it keeps fields, leaves them out, or gives top-level fields the value of a
//! path or a constant. Any other expression may fail, and its stage stays.

use super::logical::LogicalStage;
use super::steps::Steps;
use super::{Effect, Kind, Rule};
use crate::{Environment, Stage};
use bunko_errors::Result;
use bunko_matcher::planted::{Fault, active};

pub(super) const RULE: Rule = Rule { name: "dropBeforeCount", kind: Kind::Whole(drop_uncounted) };

fn drop_uncounted(stages: &mut Vec<LogicalStage>, environment: &Environment, _: &mut Steps<'_>) -> Result<bool> {
    let before = stages.len();
    environment.operation().work(before)?;
    let mut are_counted = false;
    for position in (0..before).rev() {
        let own = &mut stages[position];
        if are_counted && is_needless(&*own.stage) {
            stages.remove(position);
        } else {
            are_counted = own.stage.counts_alone() || are_counted && passes_any(own.effect());
        }
    }
    Ok(stages.len() < before)
}

/// Whether a stage changes only the contents of documents, not their number or order, and fails for none.
fn is_needless(stage: &dyn Stage) -> bool {
    stage.only_changes_documents()
        || active(Fault::FailingDropped) && stage.makes_one_of_each()
        || active(Fault::UnwindUncounted) && stage.unwinding().is_some()
}

/// Whether the number of documents that a stage passes on does not depend on their contents.
fn passes_any(effect: &Effect) -> bool {
    match effect {
        Effect::Cuts | Effect::Unites => true,
        Effect::Filters => active(Fault::FilteredUncounted),
        _ => false,
    }
}
