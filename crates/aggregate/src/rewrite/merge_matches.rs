//! Merges adjacent `$match` stages after the first other stage into one.
//!
//! **Proof.** A document passes both if it satisfies the filter `$and` of both. Filters with operators that may fail, or
//! that have metadata, are not merged, so no order of evaluation can be told apart. The filters that begin a pipeline are
//! left alone: the planner takes all of them as one.

use super::logical::LogicalStage;
use super::origin::Origin;
use super::steps::Steps;
use super::{Condition, Kind, Rule};
use crate::Environment;
use crate::stage::Plannable;
use crate::stages;
use bunko_errors::Result;

pub(super) const RULE: Rule = Rule { name: "mergeMatches", kind: Kind::Whole(merge) };

fn merge(stages: &mut Vec<LogicalStage>, environment: &Environment, _: &mut Steps<'_>) -> Result<bool> {
    let leading = stages.iter().take_while(|stage| stage.is_filter()).count();
    let mut merged = Vec::with_capacity(stages.len());
    let mut rest = stages.drain(..).peekable();
    merged.extend(rest.by_ref().take(leading));
    let mut is_merged = false;
    while let Some(mut stage) = rest.next() {
        let mut conditions: Vec<_> = movable(&stage).into_iter().collect();
        while let (false, Some(next)) = (conditions.is_empty(), rest.peek().and_then(movable)) {
            conditions.push(next);
            stage.numbers.extend(rest.next().into_iter().flat_map(|next| next.numbers));
        }
        if conditions.len() > 1 {
            stage.stage = stages::filtering(Condition::all(&conditions).filter.as_ref(), environment)?;
            is_merged = true;
        }
        merged.push(stage);
    }
    drop(rest);
    *stages = merged;
    Ok(is_merged)
}

/// The condition of a filter that cannot fail.
fn movable(stage: &LogicalStage) -> Option<Condition> {
    let Plannable::Filter(filter) = stage.stage.plannable() else { return None };
    let condition = Condition::whole(filter);
    condition.equivalent(&|path| Origin::Exact(path.to_owned()))
}
