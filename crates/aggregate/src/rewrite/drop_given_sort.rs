//! Drops a `$sort` whose order its documents already have from an earlier one.
//!
//! **Proof.** The stages between keep the order of documents, and the values at the paths of the later sort: each path has
//! an exact origin there, down to the earlier sort. The later pattern, on these origins, is the beginning of the earlier
//! one, with the same directions. Documents with equal keys have no defined order. No expression reads metadata, so
//! nothing asks for the later sort's keys.

use super::logical::LogicalStage;
use super::origin::{Origin, of_path};
use super::{Effect, Kind, Rule};
use crate::Environment;
use crate::stage::Plannable;
use bunko_errors::Result;
use bunko_matcher::planted::{Fault, active};

pub(super) const RULE: Rule = Rule { name: "dropGivenSort", kind: Kind::Whole(drop_given) };

fn drop_given(stages: &mut Vec<LogicalStage>, environment: &Environment) -> Result<bool> {
    if environment.scope.at_hand.is_wanted() {
        return Ok(false);
    }
    let before = stages.len();
    environment.operation().work(before)?;
    for position in (1..stages.len()).rev() {
        if is_given(&mut stages[..=position]) {
            stages.remove(position);
        }
    }
    Ok(stages.len() < before)
}

/// Whether the last stage sorts documents that have its order.
fn is_given(stages: &mut [LogicalStage]) -> bool {
    let Some((sort, before)) = stages.split_last_mut() else { return false };
    let Plannable::Sort(pattern) = sort.stage.plannable() else { return false };
    let mut wanted: Vec<_> = pattern.parts().map(|(path, direction)| (path.dotted(), direction)).collect();
    for stage in before.iter_mut().rev() {
        if let Plannable::Sort(earlier) = stage.stage.plannable() {
            let mut given = earlier.parts().map(|(path, direction)| (path.dotted(), direction));
            return wanted.into_iter().all(|wanted| match given.next() {
                Some((path, _)) if active(Fault::SortDirectionsIgnored) => path == wanted.0,
                given => given == Some(wanted),
            });
        }
        let changes = match stage.effect() {
            Effect::Filters | Effect::Cuts => continue,
            Effect::Reshapes(changes) | Effect::Unwinds(changes) | Effect::Searches(changes) => changes,
            Effect::Joins(joined) => &joined.changes,
            _ if active(Fault::OrderKeptByAll) => continue,
            _ => return false,
        };
        if active(Fault::SortPathsKept) {
            continue;
        }
        for (path, _) in &mut wanted {
            let Origin::Exact(source) = of_path(path, changes) else { return false };
            *path = source;
        }
    }
    false
}
