//! `$alwaysTrue` and `$alwaysFalse`: constants.

use super::TopLevelOperator;
use crate::expression::Expression;
use bunko_bson::{ValueRef, number};
use bunko_errors::{Failure, Result};

pub(crate) const ALWAYS_TRUE: TopLevelOperator =
    TopLevelOperator { name: "$alwaysTrue", parse: |_, value| constant("$alwaysTrue", value, Expression::AlwaysTrue) };
pub(crate) const ALWAYS_FALSE: TopLevelOperator = TopLevelOperator {
    name: "$alwaysFalse",
    parse: |_, value| constant("$alwaysFalse", value, Expression::AlwaysFalse),
};

fn constant(name: &str, value: ValueRef<'_>, expression: Expression) -> Result<Expression> {
    if value.is_number() && number::as_i64_exact(value) == Some(1) {
        Ok(expression)
    } else {
        Err(Failure::failed_to_parse(format!("{name} must be an integer value of 1")))
    }
}
