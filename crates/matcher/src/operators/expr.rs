//! `$expr`: an aggregation expression over the whole document, compiled by the caller's [`crate::ExprCompiler`].

use super::TopLevelOperator;
use crate::expr::Expr;
use crate::expression::Expression;
use crate::parser::{Level, Parser};
use bunko_bson::{StringUse, ValueRef};
use bunko_errors::{Failure, Result};

pub(crate) const EXPR: TopLevelOperator = TopLevelOperator { name: "$expr", strings: StringUse::Collated, parse };

fn parse(parser: &Parser<'_>, value: ValueRef<'_>) -> Result<Expression> {
    if parser.level == Level::Element {
        return Err(Failure::bad_value("$expr can only be applied to the top-level document"));
    }
    Ok(Expression::Expr(Expr::new(EXPR.name, value.to_value(), parser.compiler.compile(value)?)))
}
