//! Moves a condition before `{$replaceRoot: {newRoot: '$a.b'}}`.
//!
//! **Proof.** A document at `a.b` becomes the whole, so a condition on `k` is one on `a.b.k`. If the expression finds a
//! document there, the path leads through documents only, and both conditions see the same values. If it finds anything
//! else, the stage fails. MongoDB reports that failure also for documents that the condition would exclude, so these
//! documents must reach the stage: the condition accepts them (`$or`).

use super::origin::Origin;
use super::{Condition, Effect, Kind, Passage, Rule};
use crate::Environment;
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_matcher::planted::{Fault, active};

pub(super) const RULE: Rule = Rule { name: "matchBeforeNewRoot", kind: Kind::Passage(passage) };

fn passage(effect: &Effect, condition: &Condition, _: &Environment) -> Option<Passage> {
    let Effect::ReplacesBy(root) = effect else { return None };
    let inside = condition.equivalent(&|path| Origin::Exact(format!("{root}.{path}")))?;
    if active(Fault::RootlessDropped) {
        return Some(Passage::before(inside));
    }
    let kind = DocumentBuf::new().with("$type", format!("${root}").as_str());
    let operands: ArrayBuf = [ValueRef::from(&kind), ValueRef::String("object")].into_iter().collect();
    let is_other = DocumentBuf::new().with("$expr", &DocumentBuf::new().with("$ne", &operands));
    let either: ArrayBuf = [&inside.filter, &is_other].into_iter().collect();
    Some(Passage::before(Condition { filter: DocumentBuf::new().with("$or", &either) }))
}
