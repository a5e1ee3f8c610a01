//! `$replaceAll`: a string with all occurrences of another replaced.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Parameters, Result};
use crate::printed::printed;
use bunko_bson::ValueRef;

const PARAMETERS: Parameters = Parameters {
    not_an_object: (51751, "$replaceAll requires an object as an argument, found: {}"),
    unknown: (51750, "$replaceAll found an unknown argument: {}"),
    names: &[
        ("input", Some((51749, "$replaceAll requires 'input' to be specified"))),
        ("find", Some((51748, "$replaceAll requires 'find' to be specified"))),
        ("replacement", Some((51747, "$replaceAll requires 'replacement' to be specified"))),
    ],
};

pub(super) const OPERATOR: Operator = Operator { name: "$replaceAll", form: Form::Named(&PARAMETERS), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let values = [call.argument(0, context)?, call.argument(1, context)?, call.argument(2, context)?];
    for ((value, name), code) in values.iter().zip(["input", "find", "replacement"]).zip([51746, 51745, 51744]) {
        if !value.is_nullish() && !matches!(value.get(), Some(ValueRef::String(_))) {
            return Err(call.failure(code, &format!(" requires that '{name}' be a string, found: {}", printed(value))));
        }
    }
    let [Some(text), Some(find), Some(replacement)] =
        [0, 1, 2].map(|index: usize| values[index].get().and_then(ValueRef::as_str))
    else {
        return Ok(Evaluated::null());
    };
    Ok(text.replace(find, replacement).into())
}
