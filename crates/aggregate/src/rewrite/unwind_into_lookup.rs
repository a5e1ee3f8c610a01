//! Lets a `$lookup` do the `$unwind` of its own array, so that the array is never made.
//!
//! **Proof.** The stage checks that the `$unwind` is of the field `as`, which holds nothing but the array of joined
//! documents. Unwinding them one by one returns the same documents in the same order. The one difference: an array
//! above the size limit no longer fails.

use super::{Kind, Rule};
use crate::Stage;

pub(super) const RULE: Rule = Rule { name: "unwindIntoLookup", kind: Kind::Pair(unwind) };

fn unwind(first: &mut dyn Stage, second: &dyn Stage) -> bool {
    second.unwinding().is_some() && first.absorb(second)
}
