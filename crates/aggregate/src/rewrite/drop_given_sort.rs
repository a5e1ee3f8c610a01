//! Drops a `$sort` whose order its documents already have from an earlier one.
//!
//! **Proof.** The stages between the two sorts keep the order of documents, and the values at the paths of the later
//! sort: each of these paths has an exact origin at the earlier sort. With these origins as paths, the later pattern is
//! the beginning of the earlier one, with the same directions. Documents with equal keys have no defined order. No
//! expression reads metadata, so nothing asks for the later sort's keys.
//!
//! **Errors.** The later sort fails for no document: it does not sort by copies of one field, so paths that lead through
//! different arrays do so at the earlier sort too.

use super::logical::LogicalStage;
use super::origin::{Origin, is_copy_of_other, of_path};
use super::steps::Steps;
use super::{Effect, Kind, Rule};
use crate::Environment;
use crate::stage::Plannable;
use bunko_bson::key_string::Direction;
use bunko_errors::Result;
use bunko_matcher::planted::{Fault, active};

pub(super) const RULE: Rule = Rule { name: "dropGivenSort", kind: Kind::Whole(drop_given) };

fn drop_given(stages: &mut Vec<LogicalStage>, environment: &Environment, steps: &mut Steps<'_>) -> Result<bool> {
    if environment.scope.at_hand.is_wanted() {
        return Ok(false);
    }
    let before = stages.len();
    for position in (1..stages.len()).rev() {
        if is_given(&mut stages[..=position], steps)? {
            stages.remove(position);
        }
    }
    Ok(stages.len() < before)
}

/// Whether the last stage sorts documents that have its order.
fn is_given(stages: &mut [LogicalStage], steps: &mut Steps<'_>) -> Result<bool> {
    let Some((sort, before)) = stages.split_last_mut() else { return Ok(false) };
    let Plannable::Sort(pattern) = sort.stage.plannable() else { return Ok(false) };
    let mut wanted: Vec<_> = pattern.parts().map(|(path, direction)| (path.dotted(), direction)).collect();
    for stage in before.iter_mut().rev() {
        if let Plannable::Sort(earlier) = stage.stage.plannable() {
            let mut given = earlier.parts().map(|(path, direction)| (path.dotted(), direction));
            return Ok(wanted.into_iter().all(|wanted| match given.next() {
                Some((path, _)) if active(Fault::SortDirectionsIgnored) => path == wanted.0,
                given => given == Some(wanted),
            }));
        }
        let effect = stage.effect();
        if !steps.takes(wanted.len() * effect.steps_of_path())? {
            return Ok(false);
        }
        let changes = match effect {
            Effect::Filters | Effect::Cuts => continue,
            Effect::Reshapes(changes) | Effect::Unwinds(changes) | Effect::Searches(changes) => changes,
            Effect::Joins(joined) => &joined.changes,
            _ if active(Fault::OrderKeptByAll) => continue,
            _ => return Ok(false),
        };
        if active(Fault::SortPathsKept) {
            continue;
        }
        let mut sources: Vec<(String, Direction)> = Vec::with_capacity(wanted.len());
        for (path, direction) in &wanted {
            let Origin::Exact(source) = of_path(path, changes) else { return Ok(false) };
            let mut earlier = wanted.iter().zip(&sources);
            if earlier.any(|((other, _), (origin, _))| is_copy_of_other([path, other], [&source, origin])) {
                return Ok(false);
            }
            sources.push((source, *direction));
        }
        wanted = sources;
    }
    Ok(false)
}
