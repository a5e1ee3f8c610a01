//! `$and`, `$or`, `$nor`: lists of filters.

use super::TopLevelOperator;
use crate::expression::Expression;
use crate::parser::Parser;
use bunko_bson::{StringUse, ValueRef};
use bunko_errors::{Failure, Result};

pub(crate) const AND: TopLevelOperator = TopLevelOperator {
    name: "$and",
    strings: StringUse::Collated,
    parse: |parser, value| Ok(Expression::and(list(parser, "$and", value)?)),
};
pub(crate) const OR: TopLevelOperator = TopLevelOperator {
    name: "$or",
    strings: StringUse::Collated,
    parse: |parser, value| Ok(Expression::or(list(parser, "$or", value)?)),
};
pub(crate) const NOR: TopLevelOperator = TopLevelOperator {
    name: "$nor",
    strings: StringUse::Collated,
    parse: |parser, value| Ok(Expression::nor(list(parser, "$nor", value)?)),
};

fn list(parser: &Parser<'_>, name: &str, value: ValueRef<'_>) -> Result<Vec<Expression>> {
    let ValueRef::Array(filters) = value else {
        return Err(Failure::bad_value(format!("{name} must be an array")));
    };
    if filters.is_empty() {
        return Err(Failure::bad_value("$and/$or/$nor must be a nonempty array"));
    }
    parser.gathered(filters.iter().map(|filter| {
        parser.count_condition()?;
        match filter {
            ValueRef::Document(filter) => parser.filter(filter),
            _ => Err(Failure::bad_value("$or/$and/$nor entries need to be full objects")),
        }
    }))
}
