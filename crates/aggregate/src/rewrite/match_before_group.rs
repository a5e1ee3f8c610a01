//! Moves a condition on `_id` before `$group`.
//!
//! **Proof.** The condition must accept all documents of a group or none: then groups appear or disappear whole, and the
//! accumulators of the others see the same documents in the same order.
//!
//! - `{_id: '$k'}`, and `{_id: {x: '$k'}}` for `_id.x`: the documents of a group have equal values at `k`. Equal values
//!   may differ in type or spelling: 1 and 1.0, null and a missing field, strings that a collation does not tell apart.
//!   So only conditions that compare values pass. `$exists`, `$type` and patterns stay.
//! - `{_id: '$k.m'}` gathers values from arrays. All documents of a group that satisfies a condition have the value that
//!   does, so a condition that only a value without elements satisfies is copied.
//!
//! A condition does not pass if its operand is MinKey, MaxKey, code or a document: MongoDB's slot-based engine gives
//! such an `_id` another value.

use super::condition::Proof;
use super::origin::{Origin, below, may_index};
use super::{Condition, Effect, Kind, Passage, Rule};
use crate::Environment;

pub(super) const RULE: Rule = Rule { name: "matchBeforeGroup", kind: Kind::Passage(passage) };

fn passage(effect: &Effect, condition: &Condition, _: &Environment) -> Option<Passage> {
    let Effect::Groups { keys } = effect else { return None };
    let mapped = condition.mapped(&|path| {
        let Some((rest, source)) = keys.iter().find_map(|(key, source)| Some((below(path, key)?, source))) else {
            return Origin::Unknown;
        };
        match format!("{source}{rest}") {
            mapped if !source.contains('.') => Origin::Equal(mapped),
            mapped if !may_index(&mapped) => Origin::Implied(mapped),
            _ => Origin::Unknown,
        }
    })?;
    Some(match mapped.proof {
        Proof::Equivalent => Passage::before(mapped.condition),
        // Equal values of a group must have the same answer here too.
        Proof::Implied if condition.equivalent(&|path| Origin::Equal(path.to_owned())).is_some() => {
            Passage::copied(mapped.condition)
        }
        Proof::Implied => return None,
    })
}
