//! `$cond`: the second argument if the first is true, else the third.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Parameters, Result, Strings, positional};
use crate::{Expression, ParseScope};
use bunko_bson::ValueRef;

const PARAMETERS: Parameters = Parameters {
    not_an_object: (17080, "Missing 'if' parameter to $cond"),
    unknown: (17083, "Unrecognized parameter to $cond: {}"),
    names: &[
        ("if", Some((17080, "Missing 'if' parameter to $cond"))),
        ("then", Some((17081, "Missing 'then' parameter to $cond"))),
        ("else", Some((17082, "Missing 'else' parameter to $cond"))),
    ],
};

pub(super) const OPERATOR: Operator =
    Operator { name: "$cond", strings: Strings::AsBytes, form: Form::Special(parse), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    chosen(call, context)?.evaluate(context)
}

/// Evaluates the condition, and returns the argument that it selects.
pub(super) fn chosen<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<&'a Expression> {
    Ok(&call.arguments[if call.argument(0, context)?.is_true() { 1 } else { 2 }])
}

fn parse(operator: &'static Operator, value: ValueRef<'_>, scope: &ParseScope) -> Result<Call> {
    let arguments = match value {
        ValueRef::Document(_) => PARAMETERS.parse(value, scope)?,
        _ => positional(value, scope)?,
    };
    Arity::Exactly(3).check(operator.name, arguments.len())?;
    Ok(Call::new(operator, arguments))
}
