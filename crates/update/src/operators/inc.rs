//! `$inc`: adds to a number.

use super::Operator;
use super::arithmetic::{Arithmetic, Operation};
use crate::trie::Plan;
use bunko_bson::{Element, StringUse};
use bunko_errors::Result;

pub(super) const OPERATOR: Operator = Operator { name: "$inc", strings: StringUse::AsBytes, parse };

fn parse(plan: &mut Plan, field: Element<'_>) -> Result<()> {
    plan.modify(field.name, Arithmetic::parse(Operation::Add, field)?)
}
