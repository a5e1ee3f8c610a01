//! `$ifNull`: the first argument that is neither null nor missing, else the last.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings, positional, refuse};
use crate::{Expression, ParseScope};
use bunko_bson::ValueRef;

pub(super) const OPERATOR: Operator =
    Operator { name: "$ifNull", strings: Strings::AsBytes, form: Form::Special(parse), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let last = call.arguments.len() - 1;
    for index in 0..last {
        let value = call.argument(index, context)?;
        if !value.is_nullish() {
            return Ok(value);
        }
    }
    call.argument(last, context)
}

fn parse(operator: &'static Operator, value: ValueRef<'_>, scope: &ParseScope) -> Result<Call> {
    let arguments = arguments(value, scope)?;
    if arguments.len() < 2 {
        let found = arguments.len().to_string();
        return Err(refuse((1_257_300, "$ifNull needs at least two arguments, had: {}"), &found));
    }
    Ok(Call::new(operator, arguments))
}

/// Parses the arguments. Those after a constant that is not null are never evaluated.
fn arguments(value: ValueRef<'_>, scope: &ParseScope) -> Result<Vec<Expression>> {
    let Some(given) = value.as_array() else { return positional(value, scope) };
    let unreached = scope.unreached();
    let mut reached = scope;
    let mut arguments = Vec::new();
    for value in given.iter() {
        let argument = Expression::parse(value, reached)?;
        if argument.as_literal().is_some_and(|value| !value.is_nullish()) {
            reached = &unreached;
        }
        arguments.push(argument);
    }
    Ok(arguments)
}
