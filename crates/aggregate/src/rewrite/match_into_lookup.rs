//! Moves a condition on the joined documents of a `$lookup` with `$unwind` into their collection.
//!
//! **Proof.** The field `as` of each result is one joined document. A condition whose paths all lie below `as` sees
//! that document alone, so it may be applied before the document is joined. `as` must be a top-level field. The
//! `$unwind` must not show the position of the element, which the condition would change.
//!
//! With `preserveNullAndEmptyArrays`, the condition must be false for a missing `as`. It then drops each document that
//! the `$unwind` keeps without a match, so the `$unwind` need not keep any. An expression stays outside, because the
//! variables of the join may hide those that it reads.

use super::origin::{Origin, below};
use super::{Condition, Effect, Kind, Passage, Rule};
use crate::Environment;
use bunko_matcher::planted::{Fault, active};

pub(super) const RULE: Rule = Rule { name: "matchIntoLookup", kind: Kind::Passage(passage) };

fn passage(effect: &Effect, condition: &Condition, _: &Environment) -> Option<Passage> {
    let Effect::Joins(joined) = effect else { return None };
    let side = joined.side.as_ref()?;
    if condition.holds_expression()
        || side.keeps_unmatched && !condition.is_positive() && !active(Fault::UnmatchedAlike)
    {
        return None;
    }
    let inside = condition.equivalent(&|path| {
        let rest = below(path, &side.field).and_then(|rest| rest.strip_prefix('.'));
        match rest.map(str::to_owned) {
            None => Origin::Unknown,
            Some(path) if side.keeps_unmatched && !active(Fault::UnmatchedAlike) => Origin::Found(path),
            Some(path) => Origin::Exact(path),
        }
    })?;
    Some(Passage { inside: Some(inside), ..Passage::default() })
}
