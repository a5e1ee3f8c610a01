//! `$zip`: for each position, an array of the elements that the given arrays have there.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Parameters, Result, Strings, refuse};
use crate::array::elements;
use crate::made::MadeArray;
use crate::printed::printed_value;
use crate::{Expression, ParseScope};
use bunko_bson::{Value, ValueRef};

const PARAMETERS: Parameters = Parameters {
    not_an_object: (34460, "$zip only supports an object as an argument, found {}"),
    unknown: (34464, "$zip found an unknown argument: {}"),
    names: &[
        ("inputs", Some((34465, "$zip requires at least one input array"))),
        ("useLongestLength", None),
        ("defaults", None),
    ],
};
const FIRST_INPUT: usize = 2;

pub(super) const OPERATOR: Operator =
    Operator { name: "$zip", strings: Strings::AsBytes, form: Form::Special(parse), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let inputs = (FIRST_INPUT..call.arguments.len()).map(|index| call.argument(index, context));
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    let mut arrays = Vec::new();
    for input in &inputs {
        match input.get() {
            None | Some(ValueRef::Null | ValueRef::Undefined) => return Ok(Evaluated::null()),
            Some(ValueRef::Array(array)) => arrays.push(elements(array, context)?),
            Some(other) => {
                let refusal = (34468, "$zip found a non-array expression in input: {}");
                return Err(refuse(refusal, &printed_value(other)));
            }
        }
    }
    let lengths = arrays.iter().map(Vec::len);
    let longest = call.argument(0, context)?.is_true();
    let length = if longest { lengths.max() } else { lengths.min() }.unwrap_or(0);
    let defaults = call.argument(1, context)?;
    let defaults: Vec<_> =
        defaults.get().and_then(ValueRef::as_array).into_iter().flat_map(bunko_bson::ArrayRef::iter).collect();
    let mut zipped = MadeArray::new(call.name(), context);
    for position in 0..length {
        let mut row = MadeArray::new(call.name(), context);
        for (input, array) in arrays.iter().enumerate() {
            row.push(array.get(position).or(defaults.get(input)).copied().unwrap_or(ValueRef::Null))?;
        }
        zipped.push(row.finish().or_null())?;
    }
    Ok(zipped.finish())
}

/// Arguments are `useLongestLength`, the defaults, and the inputs.
fn parse(operator: &'static Operator, value: ValueRef<'_>, scope: &ParseScope) -> Result<Call> {
    let given = PARAMETERS.read(value)?;
    let Some(ValueRef::Array(inputs)) = given[0] else {
        let found = given[0].map_or("missing", |value| value.kind().alias());
        return Err(refuse((34461, "inputs must be an array of expressions, found {}"), found));
    };
    let longest = match given[1] {
        None => false,
        Some(ValueRef::Boolean(longest)) => longest,
        Some(other) => {
            return Err(refuse((34463, "useLongestLength must be a bool, found {}"), other.kind().alias()));
        }
    };
    let mut arguments = vec![Expression::literal(Value::Boolean(longest)), Expression::ABSENT];
    if let Some(defaults) = given[2] {
        let Some(array) = defaults.as_array() else {
            let refusal = (34462, "defaults must be an array of expressions, found {}");
            return Err(refuse(refusal, defaults.kind().alias()));
        };
        if !longest {
            return Err(refuse((34466, "cannot specify defaults unless useLongestLength is true"), ""));
        }
        if array.count() != inputs.count() {
            return Err(refuse((34467, "defaults and inputs must have the same length"), ""));
        }
        arguments[1] = Expression::parse(defaults, scope)?;
    }
    if inputs.is_empty() {
        return Err(refuse((34465, "$zip requires at least one input array"), ""));
    }
    for input in inputs.iter() {
        arguments.push(Expression::parse(input, scope)?);
    }
    Ok(Call::new(operator, arguments))
}
