//! Drops a `$sort` that stands directly before another one.
//!
//! **Proof.** The second sort decides the order alone. Documents with equal keys have no defined order, so the first sort
//! need not be kept for them. Sorts with metadata are dropped alike, since a sort changes no document. The first sort
//! has not been limited: a `$limit` would stand between them.

use super::{Effect, Kind, Pair, Rule};
use crate::Stage;

pub(super) const RULE: Rule = Rule { name: "dropOverriddenSort", kind: Kind::Pair(drop_first) };

fn drop_first(first: &mut dyn Stage, second: &dyn Stage) -> Pair {
    match (first.effect(), second.effect()) {
        (Effect::Orders, Effect::Orders) => Pair::Second,
        _ => Pair::Unchanged,
    }
}
