//! `$setField`: a document with one field, by its plain name, set or (where missing) removed.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Parameters, Result};
use bunko_bson::{DocumentBuf, ValueRef};

const PARAMETERS: Parameters = Parameters {
    not_an_object: (4_161_100, "$setField only supports an object as its argument"),
    unknown: (4_161_101, "$setField found an unknown argument: {}"),
    names: &[
        ("field", Some((4_161_102, "$setField requires 'field' to be specified"))),
        ("input", Some((4_161_109, "$setField requires 'input' to be specified"))),
        ("value", Some((4_161_103, "$setField requires 'value' to be specified"))),
    ],
};

pub(super) const OPERATOR: Operator = Operator { name: "$setField", form: Form::Named(&PARAMETERS), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    with_field(call, context)
}

/// The input with the field replaced, appended or removed; arguments are field, input and value.
pub(super) fn with_field<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let (name, input) = (call.argument(0, context)?, call.argument(1, context)?);
    let Some(ValueRef::String(name)) = name.get() else {
        let message = format!(" requires 'field' to evaluate to type String, but got {}", name.type_name());
        return Err(call.failure(4_161_107, &message));
    };
    if input.is_nullish() {
        return Ok(Evaluated::null());
    }
    let Some(ValueRef::Document(document)) = input.get() else {
        return Err(call.failure(4_161_105, " requires 'input' to evaluate to type Object"));
    };
    let value = call.optional(2, context)?.unwrap_or(Evaluated::Missing);
    let mut changed = DocumentBuf::new();
    let mut pending = value.get();
    for element in document {
        if element.name != name {
            changed.append(element.name, element.value);
        } else if let Some(value) = pending.take() {
            changed.append(name, value);
        }
    }
    if let Some(value) = pending {
        changed.append(name, value);
    }
    Ok(changed.into())
}
