//! Splits a `$match` into its conjuncts, so that each moves on its own.
//!
//! **Proof.** A document satisfies a filter if it satisfies all fields of the filter, and all clauses of its `$and`. No
//! part of a filter depends on another one: those that do (`$text` with its metadata) are not split, because such a
//! `$match` stays the first stage. The parts that stay behind the same stage become one filter again, in their order.

use super::{Kind, Rule};

pub(super) const RULE: Rule = Rule { name: "splitMatch", kind: Kind::Split };
