//! `$sortArray`: the elements in order: `1` or `-1` of the values, or a sort pattern of documents.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Parameters, Refusal, Result, refuse};
use crate::array::elements;
use crate::call::Prepared;
use crate::made::{self, MadeArray};
use crate::number::as_i32;
use crate::{Expression, ParseScope, SortPattern};
use bunko_bson::{ArrayRef, DocumentRef, ValueRef};

const PARAMETERS: Parameters = Parameters {
    not_an_object: (2_942_500, "$sortArray requires an object as an argument, found: {}"),
    unknown: (2_942_501, "$sortArray found an unknown argument: {}"),
    names: &[
        ("input", Some((2_942_502, "$sortArray requires 'input' to be specified"))),
        ("sortBy", Some((2_942_503, "$sortArray requires 'sortBy' to be specified"))),
    ],
};
const BAD_ORDER: Refusal = (2_942_507, "The $sortArray sort-by must be 1, -1, or a document of fields each 1 or -1");

pub(super) const OPERATOR: Operator = Operator { name: "$sortArray", form: Form::Special(parse), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let Some(input) = call.not_null(context)? else { return Ok(Evaluated::null()) };
    let Some(ValueRef::Array(array)) = input.get() else {
        let refusal = (2_942_504, "The input argument to $sortArray must be an array, but was of type: {}");
        return Err(refuse(refusal, input.type_name()));
    };
    let Prepared::Sort(pattern) = &call.prepared else { return sorted_values(call, context, array) };
    let mut keyed = Vec::new();
    for element in array.iter() {
        context.operation().work(made::steps(element))?;
        let mut key = Vec::new();
        let document = element.as_document().unwrap_or(DocumentRef::EMPTY);
        pattern.append_key(&mut key, document, context.operation(), context.strings())?;
        keyed.push((key, element));
    }
    let keyed = context.operation().sort_by(keyed, |(a, _), (b, _)| a.cmp(b))?;
    in_order(call, context, keyed.into_iter().map(|(_, element)| element))
}

fn sorted_values<'a>(call: &'a Call, context: &EvaluationContext<'a>, array: ArrayRef<'_>) -> Result<Evaluated<'a>> {
    let mut sorted =
        context.operation().sort_by(elements(array, context)?, |a, b| context.strings().compare(*a, *b))?;
    if call.argument(1, context)?.get().and_then(as_i32) == Some(-1) {
        sorted.reverse();
    }
    in_order(call, context, sorted.into_iter())
}

fn in_order<'a, 'v>(
    call: &Call,
    context: &EvaluationContext<'_>,
    elements: impl Iterator<Item = ValueRef<'v>>,
) -> Result<Evaluated<'a>> {
    let mut sorted = MadeArray::new(call.name(), context);
    sorted.extend(elements)?;
    Ok(sorted.finish())
}

fn parse(operator: &'static Operator, value: ValueRef<'_>, scope: &ParseScope) -> Result<Call> {
    let given = PARAMETERS.read(value)?;
    let (Some(input), Some(order)) = (given[0], given[1]) else { return Err(refuse(BAD_ORDER, "")) };
    let prepared = match order {
        ValueRef::Document(pattern) => Prepared::Sort(SortPattern::parse(pattern)?),
        number if matches!(as_i32(number), Some(1 | -1)) => Prepared::Nothing,
        _ => return Err(refuse(BAD_ORDER, "")),
    };
    let arguments = vec![Expression::parse(input, scope)?, Expression::literal(order.to_value())];
    Ok(Call { prepared, ..Call::new(operator, arguments) })
}
