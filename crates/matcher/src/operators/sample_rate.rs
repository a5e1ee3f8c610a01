//! `$sampleRate`: each document matches with the given probability.

use super::{TopLevelOperator, expr};
use crate::expr::Expr;
use crate::expression::Expression;
use crate::parser::{Level, Parser};
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, StringUse, Value, ValueRef, number};
use bunko_errors::{Failure, Result};

pub(crate) const SAMPLE_RATE: TopLevelOperator =
    TopLevelOperator { name: "$sampleRate", strings: StringUse::AsBytes, parse };

/// Parses the rate. 0 and 1 become constants, any other rate an `$expr` that compares `$rand` with it.
fn parse(parser: &Parser<'_>, value: ValueRef<'_>) -> Result<Expression> {
    if parser.level == Level::Element {
        return Err(Failure::bad_value("$sampleRate can only be applied to the top-level document"));
    }
    let rate =
        number::as_f64(value).ok_or_else(|| Failure::bad_value("argument to $sampleRate must be a numeric type"))?;
    if !(0.0..=1.0).contains(&rate) {
        return Err(Failure::bad_value("numeric argument to $sampleRate must be in [0, 1]"));
    }
    if rate == 1.0 {
        return Ok(Expression::AlwaysTrue);
    }
    if rate == 0.0 {
        return Ok(Expression::AlwaysFalse);
    }
    let random = DocumentBuf::new().with("$rand", DocumentRef::EMPTY);
    let operands = ArrayBuf::from_iter([ValueRef::from(&random), ValueRef::Double(rate)]);
    let source = Value::Document(DocumentBuf::new().with("$lt", &operands));
    let predicate = parser.compiler.compile(source.as_ref())?;
    Ok(Expression::Expr(Expr::new(expr::EXPR.name, source, predicate)))
}
