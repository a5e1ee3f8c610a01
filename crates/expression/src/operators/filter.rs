//! `$filter`: the elements for which a condition is true.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Parameters, Result, Strings, refuse};
use crate::array::element_name;
use crate::made::MadeArray;
use crate::number::as_i32;
use crate::printed::printed;
use crate::{Expression, ParseScope};
use bunko_bson::ValueRef;

const PARAMETERS: Parameters = Parameters {
    not_an_object: (28646, "$filter only supports an object as its argument"),
    unknown: (28647, "Unrecognized parameter to $filter: {}"),
    names: &[
        ("input", Some((28648, "Missing 'input' parameter to $filter"))),
        ("as", None),
        ("cond", Some((28650, "Missing 'cond' parameter to $filter"))),
        ("limit", None),
    ],
};

pub(super) const OPERATOR: Operator =
    Operator { name: "$filter", strings: Strings::AsBytes, form: Form::Special(parse), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let Some(input) = call.not_null(context)? else { return Ok(Evaluated::null()) };
    let Some(ValueRef::Array(array)) = input.get() else {
        return Err(refuse((28651, "input to $filter must be an array not {}"), input.type_name()));
    };
    let limit = limit(call, context)?;
    let mut kept = MadeArray::new(call.name(), context);
    for element in array.iter() {
        if kept.count() == limit {
            break;
        }
        context.operation().work(1)?;
        if call.argument_with(1, context, &[Some(element)], |condition| Ok(condition.is_true()))? {
            kept.push_element(element)?;
        }
    }
    Ok(kept.finish())
}

fn limit(call: &Call, context: &EvaluationContext<'_>) -> Result<usize> {
    let Some(limit) = call.optional(2, context)? else { return Ok(usize::MAX) };
    if limit.is_nullish() {
        return Ok(usize::MAX);
    }
    let Some(number) = limit.get().and_then(as_i32) else {
        let refusal = (327_391, "$filter: limit must be represented as a 32-bit integral value: {}");
        return Err(refuse(refusal, &printed(&limit)));
    };
    match usize::try_from(number) {
        Ok(positive) if positive > 0 => Ok(positive),
        _ => Err(refuse((327_392, "$filter: limit must be greater than 0: {}"), &number.to_string())),
    }
}

fn parse(operator: &'static Operator, value: ValueRef<'_>, scope: &ParseScope) -> Result<Call> {
    let given = PARAMETERS.read(value)?;
    let (inner, first_slot) = scope.bind(&[element_name(given[1])?]);
    let optional = |value: Option<ValueRef<'_>>, scope: &ParseScope| {
        value.map_or(Ok(Expression::ABSENT), |value| Expression::parse(value, scope))
    };
    let arguments = vec![optional(given[0], scope)?, optional(given[2], &inner)?, optional(given[3], scope)?];
    Ok(Call { first_slot, ..Call::new(operator, arguments) })
}
