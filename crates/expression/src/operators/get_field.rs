//! `$getField`: a field by its plain name, dots and dollars included.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Parameters, Result, Strings};
use crate::made;
use crate::{Expression, ParseScope};
use bunko_bson::{Value, ValueRef};

const PARAMETERS: Parameters = Parameters {
    not_an_object: (3_041_700, "$getField requires an object as an argument, found: {}"),
    unknown: (3_041_701, "$getField found an unknown argument: {}"),
    names: &[
        ("field", Some((3_041_702, "$getField requires 'field' to be specified"))),
        ("input", Some((3_041_703, "$getField requires 'input' to be specified"))),
    ],
};

pub(super) const OPERATOR: Operator =
    Operator { name: "$getField", strings: Strings::AsBytes, form: Form::Special(parse), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let (name, input) = (call.argument(0, context)?, call.argument(1, context)?);
    let Some(ValueRef::String(name)) = name.get() else {
        let message = format!(" requires 'field' to evaluate to type String, but got {}", name.type_name());
        return Err(call.failure(3_041_704, &message));
    };
    context.operation().work(made::field_steps(input.or_null()))?;
    Ok(match input {
        Evaluated::Ref(ValueRef::Document(document)) => Evaluated::from(document.get(name)),
        Evaluated::Owned(Value::Document(document)) => Evaluated::from(document.as_ref().get(name)).into_owned(),
        nullish if nullish.is_nullish() => nullish,
        _ => Evaluated::Missing,
    })
}

/// Reads `{field, input}`, or only a field: `input` is then the current document.
fn parse(operator: &'static Operator, value: ValueRef<'_>, scope: &ParseScope) -> Result<Call> {
    let current = || Expression::parse(ValueRef::String("$$CURRENT"), scope);
    let named = value
        .as_document()
        .is_some_and(|document| document.first().is_none_or(|element| !element.name.starts_with('$')));
    let arguments = if named {
        let mut arguments = PARAMETERS.parse(value, scope)?;
        if arguments[1].is_absent() {
            arguments[1] = current()?;
        }
        arguments
    } else {
        vec![Expression::parse(value, scope)?, current()?]
    };
    Ok(Call::new(operator, arguments))
}
