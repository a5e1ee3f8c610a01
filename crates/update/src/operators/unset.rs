//! `$unset`: removes a field; an array element becomes null, so that later elements keep their positions.

use super::{Effect, Modifier, Operator, Scene};
use crate::trie::Plan;
use bunko_bson::{Element, StringUse, ValueRef};
use bunko_errors::Result;

pub(super) const OPERATOR: Operator = Operator { name: "$unset", strings: StringUse::AsBytes, parse };

#[derive(Debug)]
struct Unset;

fn parse(plan: &mut Plan, field: Element<'_>) -> Result<()> {
    plan.modify(field.name, Unset)
}

impl Modifier for Unset {
    fn modify<'a>(&'a self, _current: Option<ValueRef<'a>>, _scene: &Scene<'a>) -> Result<Effect<'a>> {
        Ok(Effect::Remove)
    }
}
