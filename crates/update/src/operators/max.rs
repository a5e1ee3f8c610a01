//! `$max`: raises a value to a minimum, in the order of all types.

use super::Operator;
use super::compare::Compare;
use crate::trie::Plan;
use bunko_bson::{Element, StringUse};
use bunko_errors::Result;
use std::cmp::Ordering;

pub(super) const OPERATOR: Operator = Operator { name: "$max", strings: StringUse::Collated, parse };

fn parse(plan: &mut Plan, field: Element<'_>) -> Result<()> {
    let strings = plan.strings().clone();
    plan.modify(field.name, Compare { value: field.value.to_value(), wanted: Ordering::Greater, strings })
}
