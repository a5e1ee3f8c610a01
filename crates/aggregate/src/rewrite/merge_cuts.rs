//! Merges adjacent `$limit` stages, and adjacent `$skip` stages.
//!
//! **Proof.** The first `n` of the first `m` documents are the first `min(n, m)`. Skipping `m` and then `n` skips `m + n`;
//! a sum that no integer holds is not formed.

use super::{Kind, Rule};
use crate::Stage;
use crate::stages::Plannable;

pub(super) const RULE: Rule = Rule { name: "mergeCuts", kind: Kind::Pair(merge) };

fn merge(first: &mut dyn Stage, second: &dyn Stage) -> bool {
    let is_cut = matches!(second.plannable(), Plannable::Skip(_) | Plannable::Limit(_));
    is_cut && first.absorb(second)
}
