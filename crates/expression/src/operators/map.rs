//! `$map`: an array of an expression's values, one for each element.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Parameters, Result, Strings, refuse};
use crate::array::element_name;
use crate::made::MadeArray;
use crate::{Expression, ParseScope};
use bunko_bson::ValueRef;

const PARAMETERS: Parameters = Parameters {
    not_an_object: (16878, "$map only supports an object as its argument"),
    unknown: (16879, "Unrecognized parameter to $map: {}"),
    names: &[
        ("input", Some((16880, "Missing 'input' parameter to $map"))),
        ("as", None),
        ("in", Some((16882, "Missing 'in' parameter to $map"))),
    ],
};

pub(super) const OPERATOR: Operator =
    Operator { name: "$map", strings: Strings::AsBytes, form: Form::Special(parse), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let Some(input) = call.not_null(context)? else { return Ok(Evaluated::null()) };
    let Some(ValueRef::Array(array)) = input.get() else {
        return Err(refuse((16883, "input to $map must be an array not {}"), input.type_name()));
    };
    let mut mapped = MadeArray::new(call.name(), context);
    for element in array.iter() {
        call.argument_with(1, context, &[Some(element)], |evaluated| mapped.push(evaluated.or_null()))?;
    }
    Ok(mapped.finish())
}

fn parse(operator: &'static Operator, value: ValueRef<'_>, scope: &ParseScope) -> Result<Call> {
    let given = PARAMETERS.read(value)?;
    let optional = |value: Option<ValueRef<'_>>, scope: &ParseScope| {
        value.map_or(Ok(Expression::ABSENT), |value| Expression::parse(value, scope))
    };
    let input = optional(given[0], scope)?;
    let (inner, first_slot) = scope.bind(&[element_name(given[1])?]);
    let arguments = vec![input, optional(given[2], &inner)?];
    Ok(Call { first_slot, ..Call::new(operator, arguments) })
}
