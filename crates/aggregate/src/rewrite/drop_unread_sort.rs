//! Drops a `$sort` if no later stage can tell the order of its documents.
//!
//! **Proof.** Behind the sort stand stages that treat each document alone, and then one whose results do not depend on the
//! order: another `$sort`, or a `$group` that counts all documents. No `$skip` or `$limit` stands between. No expression
//! reads metadata, so nothing asks for the sort's keys. A `$group` by a field, or with `$min`, stays behind its sort: of
//! equal values with different types, it returns the first. A sort that fails, for arrays in two of its fields, no longer
//! does.

use super::logical::LogicalStage;
use super::{Effect, Kind, Rule};
use crate::Environment;
use crate::stage::Plannable;
use bunko_errors::Result;

pub(super) const RULE: Rule = Rule { name: "dropUnreadSort", kind: Kind::Whole(drop_unread) };

fn drop_unread(stages: &mut Vec<LogicalStage>, environment: &Environment) -> Result<bool> {
    if environment.scope.at_hand.is_wanted() {
        return Ok(false);
    }
    let before = stages.len();
    environment.operation().work(before)?;
    for position in (0..stages.len()).rev() {
        let is_sort = matches!(stages[position].stage.plannable(), Plannable::Sort(_));
        if is_sort && is_unread(&mut stages[position + 1..]) {
            stages.remove(position);
        }
    }
    Ok(stages.len() < before)
}

/// Whether the results of these stages do not depend on the order of their input.
fn is_unread(stages: &mut [LogicalStage]) -> bool {
    for stage in stages {
        if stage.stage.counts_alone() {
            return true;
        }
        match stage.effect() {
            Effect::Orders => return true,
            Effect::Filters
            | Effect::Reshapes(_)
            | Effect::ReplacesBy(_)
            | Effect::Unwinds(_)
            | Effect::Joins(_)
            | Effect::Searches(_)
            | Effect::Prunes => {}
            _ => return false,
        }
    }
    false
}
