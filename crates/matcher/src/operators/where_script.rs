//! `$where`: documents for which a script returns a true value. Compiled by the caller's [`crate::ExprCompiler`].

use super::TopLevelOperator;
use crate::expr::Expr;
use crate::expression::Expression;
use crate::parser::{Level, Parser};
use bunko_bson::{StringUse, Value, ValueRef};
use bunko_errors::{Failure, Result};

pub(crate) const WHERE: TopLevelOperator = TopLevelOperator { name: "$where", strings: StringUse::AsBytes, parse };

fn parse(parser: &Parser<'_>, value: ValueRef<'_>) -> Result<Expression> {
    if parser.level == Level::Element {
        return Err(Failure::bad_value("$where can only be applied to the top-level document"));
    }
    let (ValueRef::String(text) | ValueRef::JavaScript(text)) = value else {
        return Err(Failure::bad_value("$where got bad type"));
    };
    let predicate = parser.compiler.compile_where(text)?;
    Ok(Expression::Expr(Expr::new(WHERE.name, Value::JavaScript(text.to_owned()), predicate)))
}

/// The failure for `$where` after a field name.
pub(super) fn on_field(name: &str) -> Option<Failure> {
    (name == WHERE.name).then(|| Failure::bad_value("$where cannot be applied to a field"))
}
