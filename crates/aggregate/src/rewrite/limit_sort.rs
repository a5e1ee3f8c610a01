//! Tells each `$sort` how many of its documents are read, so that it keeps no more.
//!
//! **Proof.** After the sort stand only `$skip` stages and then a `$limit`: documents beyond the sum of their numbers
//! never leave the pipeline. The `$limit` itself stays.

use super::logical::LogicalStage;
use super::{Kind, Rule};
use crate::stage::Plannable;
use bunko_matcher::planted::{Fault, active};

pub(super) const RULE: Rule = Rule { name: "limitSort", kind: Kind::Tell(limit) };

fn limit(stages: &mut [LogicalStage]) -> bool {
    let mut is_limited = false;
    for sort in 0..stages.len() {
        let mut needed = 0_u64;
        let limit = stages[sort + 1..].iter().find_map(|stage| match stage.stage.plannable() {
            Plannable::Skip(count) => {
                needed = needed.saturating_add(if active(Fault::SkippedNotKept) { 0 } else { count });
                None
            }
            Plannable::Limit(count) => Some(Some(needed.saturating_add(count))),
            _ => Some(None),
        });
        if let Some(Some(limit)) = limit {
            is_limited |= stages[sort].stage.read_at_most(limit);
        }
    }
    is_limited
}
