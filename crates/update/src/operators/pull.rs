//! `$pull`: removes array elements that match a condition.

use super::Operator;
use super::array_cull::{ArrayCull, Culling};
use crate::trie::Plan;
use bunko_bson::{Element, StringUse, ValueRef};
use bunko_errors::Result;
use bunko_matcher::{ElementFilter, Filter};
use bunko_operation::OperationContext;

pub(super) const OPERATOR: Operator = Operator { name: "$pull", strings: StringUse::Collated, parse };

fn parse(plan: &mut Plan, field: Element<'_>) -> Result<()> {
    // MongoDB reads a condition that begins with `$not` as a filter on documents. Such a filter has no `$not`, so this
    // fails.
    if let ValueRef::Document(condition) = field.value
        && condition.first().is_some_and(|first| first.name == "$not")
    {
        Filter::parse(condition)?;
    }
    let condition = ElementFilter::parse(field.value, plan.strings(), plan.operation())?;
    plan.modify(field.name, ArrayCull(condition))
}

impl Culling for ElementFilter {
    fn removes(&self, element: ValueRef<'_>, operation: &OperationContext) -> Result<bool> {
        self.matches(element, operation)
    }
}
