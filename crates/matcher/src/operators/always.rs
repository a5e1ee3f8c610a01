//! `$alwaysTrue` and `$alwaysFalse`: constants.

use super::TopLevelOperator;
use crate::expression::Expression;
use crate::integer;
use bunko_bson::{StringUse, ValueRef};
use bunko_errors::{Failure, Result};

pub(crate) const ALWAYS_TRUE: TopLevelOperator = TopLevelOperator {
    name: "$alwaysTrue",
    strings: StringUse::AsBytes,
    parse: |_, value| constant("$alwaysTrue", value, Expression::AlwaysTrue),
};
pub(crate) const ALWAYS_FALSE: TopLevelOperator = TopLevelOperator {
    name: "$alwaysFalse",
    strings: StringUse::AsBytes,
    parse: |_, value| constant("$alwaysFalse", value, Expression::AlwaysFalse),
};

fn constant(name: &str, value: ValueRef<'_>, expression: Expression) -> Result<Expression> {
    match integer::whole(name, value).map_err(Failure::failed_to_parse)? {
        1 => Ok(expression),
        _ => Err(Failure::failed_to_parse(format!("{name} must be an integer value of 1"))),
    }
}
