//! `$pull`: removes an array's elements that match a condition.

use super::Operator;
use super::array_cull::{ArrayCull, Culling};
use crate::trie::Plan;
use bunko_bson::{Element, ValueRef};
use bunko_errors::Result;
use bunko_matcher::ElementFilter;

pub(super) const OPERATOR: Operator = Operator { name: "$pull", parse };

fn parse(plan: &mut Plan, field: Element<'_>) -> Result<()> {
    plan.modify(field.name, ArrayCull(ElementFilter::parse(field.value)?))
}

impl Culling for ElementFilter {
    fn removes(&self, element: ValueRef<'_>) -> bool {
        self.matches(element)
    }
}
