//! `$sigmoid`: `1 / (1 + e^-x)`, built from the operators of this formula, whose types and errors it has.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings, parse as parse_operator};
use crate::ParseScope;
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};

pub(super) const OPERATOR: Operator =
    Operator { name: "$sigmoid", strings: Strings::AsBytes, form: Form::Special(parse), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    call.argument(0, context)
}

/// An array is not a list of arguments here, but a value of the wrong type.
fn parse(operator: &'static Operator, value: ValueRef<'_>, scope: &ParseScope) -> Result<Call> {
    let negated = DocumentBuf::new().with("$multiply", &ArrayBuf::from_iter([ValueRef::Int32(-1), value]));
    let power = DocumentBuf::new().with("$exp", &negated);
    let sum = DocumentBuf::new().with("$add", &ArrayBuf::from_iter([ValueRef::Int32(1), ValueRef::from(&power)]));
    let quotient = ArrayBuf::from_iter([ValueRef::Int32(1), ValueRef::from(&sum)]);
    let expression = parse_operator("$divide", ValueRef::from(&quotient), scope)?;
    Ok(Call::new(operator, vec![expression]))
}
