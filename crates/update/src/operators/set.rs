//! `$set`: sets a value.

use super::{Effect, Modifier, Operator, Scene};
use crate::trie::Plan;
use bunko_bson::{Element, StringUse, Value, ValueRef};
use bunko_errors::Result;

pub(super) const OPERATOR: Operator = Operator { name: "$set", strings: StringUse::AsBytes, parse };

/// Sets the value at its path. Upserts also use it, to write the equalities of the filter.
#[derive(Debug)]
pub(crate) struct Set(pub Value);

fn parse(plan: &mut Plan, field: Element<'_>) -> Result<()> {
    plan.modify(field.name, Set(field.value.to_value()))
}

impl Modifier for Set {
    fn modify<'a>(&'a self, _current: Option<ValueRef<'a>>, _scene: &Scene<'a>) -> Result<Effect<'a>> {
        Ok(Effect::Set(self.0.as_ref()))
    }
}
