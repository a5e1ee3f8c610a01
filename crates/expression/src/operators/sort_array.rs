//! `$sortArray`: the elements in order: `1` or `-1` of the values, or by fields of documents.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Refusal, Result, Strings, refuse};
use crate::array::elements;
use crate::call::Prepared;
use crate::element_order::{ElementOrder, compare_elements, compare_fields, element_direction};
use crate::made::{self, MadeArray};
use crate::{Expression, ParseScope};
use bunko_bson::{DocumentRef, ValueRef};

const NOT_AN_OBJECT: Refusal = (2_942_500, "$sortArray requires an object as an argument, found: {}");
const UNKNOWN: Refusal = (2_942_501, "$sortArray found an unknown argument: {}");
const NO_INPUT: Refusal = (2_942_502, "$sortArray requires 'input' to be specified");
const NO_ORDER: Refusal = (2_942_503, "$sortArray requires 'sortBy' to be specified");
const NOT_AN_ARRAY: Refusal = (2_942_504, "The input argument to $sortArray must be an array, but was of type: {}");
const BAD_PATTERN: Refusal = (2_942_505, "BadValue: {}");
const BAD_DIRECTION: Refusal = (2_942_506, "The $sort element value must be either 1 or -1");
const BAD_ORDER: Refusal =
    (2_942_507, "The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort embedded fields");

pub(super) const OPERATOR: Operator =
    Operator { name: "$sortArray", strings: Strings::Collated, form: Form::Special(parse), evaluate };

/// Equal elements keep their order, whatever the direction.
fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let Some(input) = call.not_null(context)? else { return Ok(Evaluated::null()) };
    let Some(ValueRef::Array(array)) = input.get() else { return Err(refuse(NOT_AN_ARRAY, input.type_name())) };
    let operation = context.operation();
    let mut sorted = MadeArray::new(call.name(), context);
    match &call.prepared {
        Prepared::Order(ElementOrder::Fields(fields)) => {
            // Each element's fields are looked up once, not at each comparison.
            let mut keyed = Vec::new();
            for element in array.iter() {
                operation.work(made::steps(element))?;
                let keys: Box<[ValueRef<'_>]> = fields.iter().map(|(path, _)| key(element, path)).collect();
                keyed.push((keys, element));
            }
            let keyed = operation.sort_by(keyed, |(a, _), (b, _)| compare_fields(fields, a, b, context.strings()))?;
            sorted.extend(keyed.into_iter().map(|(_, element)| element))?;
        }
        Prepared::Order(ElementOrder::Whole(direction)) => {
            let compare = |a: &ValueRef<'_>, b: &ValueRef<'_>| compare_elements(*direction, *a, *b, context.strings());
            sorted.extend(operation.sort_by(elements(array, context)?, compare)?)?;
        }
        _ => sorted.extend(array.iter())?,
    }
    Ok(sorted.finish())
}

/// The value by which an element is sorted: an array as a whole, null if the field is missing.
fn key<'v>(element: ValueRef<'v>, path: &str) -> ValueRef<'v> {
    element.as_document().and_then(|document| at_path(document, path)).unwrap_or(ValueRef::Null)
}

/// The value at a path. A field whose name contains the dots comes first; a number is the index into an array.
fn at_path<'v>(document: DocumentRef<'v>, path: &str) -> Option<ValueRef<'v>> {
    document.get(path).or_else(|| {
        let (name, rest) = path.split_once('.')?;
        match document.get(name)? {
            ValueRef::Document(inner) => at_path(inner, rest),
            ValueRef::Array(inner) => at_path(inner.as_document(), rest),
            _ => None,
        }
    })
}

/// Arguments are read in written order, so that the error is about the first wrong one.
fn parse(operator: &'static Operator, value: ValueRef<'_>, scope: &ParseScope) -> Result<Call> {
    let ValueRef::Document(given) = value else { return Err(refuse(NOT_AN_OBJECT, value.kind().alias())) };
    let (mut input, mut order) = (None, None);
    for argument in given {
        match argument.name {
            "input" => input = Some(Expression::parse(argument.value, scope)?),
            "sortBy" => order = Some(parse_order(argument.value)?),
            unknown => return Err(refuse(UNKNOWN, unknown)),
        }
    }
    let input = input.ok_or_else(|| refuse(NO_INPUT, ""))?;
    let order = order.ok_or_else(|| refuse(NO_ORDER, ""))?;
    Ok(Call { prepared: Prepared::Order(order), ..Call::new(operator, vec![input]) })
}

fn parse_order(order: ValueRef<'_>) -> Result<ElementOrder> {
    match order {
        ValueRef::Document(pattern) => parse_pattern(pattern),
        number if number.is_number() => {
            element_direction(number).map(ElementOrder::Whole).ok_or_else(|| refuse(BAD_DIRECTION, ""))
        }
        _ => Err(refuse(BAD_ORDER, "")),
    }
}

fn parse_pattern(pattern: DocumentRef<'_>) -> Result<ElementOrder> {
    if pattern.is_empty() {
        return Err(refuse(BAD_PATTERN, "The sort pattern is empty when it should have a set of fields."));
    }
    let fields = pattern.iter().map(|field| {
        let direction = element_direction(field.value)
            .ok_or_else(|| refuse(BAD_PATTERN, "The sort element value must be either 1 or -1"))?;
        if field.name.is_empty() {
            return Err(refuse(BAD_PATTERN, "The sort field cannot be empty"));
        }
        if field.name.split('.').any(str::is_empty) {
            let found = format!("The sort field is a dotted field but has an empty part: {}", field.name);
            return Err(refuse(BAD_PATTERN, &found));
        }
        Ok((Box::from(field.name), direction))
    });
    Ok(ElementOrder::Fields(fields.collect::<Result<_>>()?))
}
