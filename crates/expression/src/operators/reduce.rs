//! `$reduce`: folds an array: `$$value` so far, `$$this` element.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Parameters, Result, refuse};
use crate::printed::printed;
use crate::{Expression, ParseScope};
use bunko_bson::ValueRef;

const PARAMETERS: Parameters = Parameters {
    not_an_object: (40075, "$reduce requires an object as an argument, found: {}"),
    unknown: (40076, "$reduce found an unknown argument: {}"),
    names: &[
        ("input", Some((40077, "$reduce requires 'input' to be specified"))),
        ("initialValue", Some((40078, "$reduce requires 'initialValue' to be specified"))),
        ("in", Some((40079, "$reduce requires 'in' to be specified"))),
    ],
};

pub(super) const OPERATOR: Operator = Operator { name: "$reduce", form: Form::Special(parse), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let Some(input) = call.not_null(context)? else { return Ok(Evaluated::null()) };
    let Some(ValueRef::Array(array)) = input.get() else {
        return Err(refuse((40080, "$reduce requires that 'input' be an array, found: {}"), &printed(&input)));
    };
    let mut value = call.argument(1, context)?.into_owned();
    for element in array.iter() {
        value = call.argument_with(2, context, &[value.get(), Some(element)])?;
    }
    Ok(value)
}

fn parse(operator: &'static Operator, value: ValueRef<'_>, scope: &ParseScope) -> Result<Call> {
    let given = PARAMETERS.read(value)?;
    let (inner, first_slot) = scope.bind(&["value", "this"]);
    let mut arguments = Vec::new();
    for (value, scope) in given.into_iter().zip([scope, scope, &inner]) {
        arguments.push(value.map_or(Ok(Expression::ABSENT), |value| Expression::parse(value, scope))?);
    }
    Ok(Call { first_slot, ..Call::new(operator, arguments) })
}
