//! Drops a `$sort` if no later stage can tell the order of its documents.
//!
//! **Proof.** Directly after the sort stands another one, which decides the order alone: documents with equal keys have no
//! defined order, and a sort changes no document. The first sort has not been limited, since a `$limit` would stand
//! between. Or, after stages that treat each document alone, stands a stage whose results do not depend on the order:
//! another `$sort`, or a `$group` that counts all documents. No `$skip` or `$limit` stands between, and no expression reads
//! metadata, so nothing asks for the sort's keys. A `$group` by a field, or with `$min`, stays after its sort: of equal
//! values with different types, it returns the first.
//!
//! **Errors.** A sort by several paths fails for a document with arrays at two of them, and stays; a sort by one path cannot
//! fail. MongoDB drops a sort directly before another one without regard to its errors.

use super::logical::LogicalStage;
use super::steps::Steps;
use super::{Effect, Kind, Rule};
use crate::Environment;
use crate::stage::Plannable;
use bunko_errors::Result;
use bunko_matcher::planted::{Fault, active};

pub(super) const RULE: Rule = Rule { name: "dropUnreadSort", kind: Kind::Whole(drop_unread) };

fn drop_unread(stages: &mut Vec<LogicalStage>, environment: &Environment, _: &mut Steps<'_>) -> Result<bool> {
    let is_key_read = environment.scope.at_hand.is_wanted();
    let before = stages.len();
    environment.operation().work(before)?;
    for position in (0..stages.len()).rev() {
        let (own, after) = stages.split_at_mut(position + 1);
        let Plannable::Sort(pattern) = own[position].stage.plannable() else { continue };
        let cannot_fail = pattern.parts().nth(1).is_none() || active(Fault::SortErrorsHidden);
        if is_overridden(after) || cannot_fail && !is_key_read && is_unread(after) {
            stages.remove(position);
        }
    }
    Ok(stages.len() < before)
}

/// Whether the first of these stages is a sort.
fn is_overridden(stages: &mut [LogicalStage]) -> bool {
    stages.first_mut().is_some_and(|next| matches!(next.effect(), Effect::Orders))
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
            Effect::Cuts if active(Fault::SortedCutUnread) => {}
            Effect::Groups { .. } if active(Fault::GroupIgnoresOrder) => return true,
            _ => return false,
        }
    }
    false
}
