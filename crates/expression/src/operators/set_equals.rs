//! `$setEquals`: whether arrays hold the same elements, however often.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings, positional, refuse};
use crate::array::{distinct, elements};
use crate::{Expression, ParseScope};
use bunko_bson::{Value, ValueRef};
use bunko_errors::{ErrorCode, Failure};

pub(super) const OPERATOR: Operator =
    Operator { name: "$setEquals", strings: Strings::Collated, form: Form::Special(parse), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let mut first: Option<Vec<Value>> = None;
    let mut equal = true;
    for index in 0..call.arguments.len() {
        let value = call.argument(index, context)?;
        let Some(ValueRef::Array(array)) = value.get() else {
            return Err(not_an_array(17044, index, value.type_name()));
        };
        let elements = distinct(elements(array, context)?, context)?;
        match &first {
            None => first = Some(elements.into_iter().map(ValueRef::to_value).collect()),
            Some(first) => {
                let same = |(a, b): (&Value, &ValueRef<'_>)| context.strings().equal(a.as_ref(), *b);
                equal &= first.len() == elements.len() && first.iter().zip(&elements).all(same);
            }
        }
    }
    Ok(equal.into())
}

fn parse(operator: &'static Operator, value: ValueRef<'_>, scope: &ParseScope) -> Result<Call> {
    let arguments = positional(value, scope)?;
    if arguments.len() < 2 {
        let found = arguments.len().to_string();
        return Err(refuse((17045, "$setEquals needs at least two arguments had: {}"), &found));
    }
    // MongoDB checks constant arguments before it evaluates anything, and has a code of its own for them.
    let constants = arguments.iter().map(Expression::as_literal).enumerate();
    for (index, constant) in constants.filter_map(|(index, constant)| Some((index, constant?))) {
        if constant.as_array().is_none() {
            scope.constant_failure().note(not_an_array(5_887_502, index, constant.kind().alias()));
        }
    }
    Ok(Call::new(operator, arguments))
}

fn not_an_array(code: i32, index: usize, kind: &str) -> Failure {
    let message = format!("All operands of $setEquals must be arrays. {}-th argument is of type: {kind}", index + 1);
    Failure::new(ErrorCode(code), message)
}
