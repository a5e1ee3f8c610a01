//! `$setOnInsert`: `$set` for documents that an upsert creates.

use super::{Effect, Modifier, Operator, Scene};
use crate::context::Insertion;
use crate::trie::Plan;
use bunko_bson::{Element, StringUse, Value, ValueRef};
use bunko_errors::Result;

pub(super) const OPERATOR: Operator = Operator { name: "$setOnInsert", strings: StringUse::AsBytes, parse };

#[derive(Debug)]
struct SetOnInsert(Value);

fn parse(plan: &mut Plan, field: Element<'_>) -> Result<()> {
    plan.modify(field.name, SetOnInsert(field.value.to_value()))
}

impl Modifier for SetOnInsert {
    fn modify<'a>(&'a self, _current: Option<ValueRef<'a>>, scene: &Scene<'a>) -> Result<Effect<'a>> {
        Ok(match scene.context.insert {
            Insertion::Upsert => Effect::Set(self.0.as_ref()),
            Insertion::No => Effect::Keep,
        })
    }
}
