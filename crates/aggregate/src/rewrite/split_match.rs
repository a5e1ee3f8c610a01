//! Splits a `$match` into its conjuncts, so that each moves on its own.
//!
//! **Proof.** A document satisfies a filter if it satisfies all fields of the filter, and all clauses of its `$and`. No
//! part of the filter depends on another part: a filter with `$text`, on whose metadata other parts depend, is not
//! split, because its `$match` stays the first stage. The parts that stay after the same stage become one filter
//! again, in their order.

use super::{Kind, Rule};

pub(super) const RULE: Rule = Rule { name: "splitMatch", kind: Kind::Split };
