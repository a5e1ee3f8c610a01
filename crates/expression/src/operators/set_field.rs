//! `$setField`: a document with one field, by its plain name, set or (where missing) removed.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Parameters, ParseScope, Result, Strings, refuse};
use crate::made::MadeDocument;
use bunko_bson::{DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure};

const PARAMETERS: Parameters = Parameters {
    not_an_object: (4_161_100, "$setField only supports an object as its argument"),
    unknown: (4_161_101, "$setField found an unknown argument: {}"),
    names: &[
        ("field", Some((4_161_102, "$setField requires 'field' to be specified"))),
        ("value", Some((4_161_103, "$setField requires 'value' to be specified"))),
        ("input", Some((4_161_109, "$setField requires 'input' to be specified"))),
    ],
};

pub(super) const OPERATOR: Operator =
    Operator { name: "$setField", strings: Strings::AsBytes, form: Form::Special(parse), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    with_field(call, context)
}

fn parse(operator: &'static Operator, value: ValueRef<'_>, scope: &ParseScope) -> Result<Call> {
    with_constant_field(operator, &PARAMETERS, value, scope)
}

/// Reads the arguments, the first of which is the field's name and no expression but `$literal`.
pub(super) fn with_constant_field(
    operator: &'static Operator,
    parameters: &Parameters,
    value: ValueRef<'_>,
    scope: &ParseScope,
) -> Result<Call> {
    let field = parameters.read(value)?.into_iter().next().flatten();
    let call = Call::new(operator, parameters.parse(value, scope)?);
    if let Some(ValueRef::String(path)) = field
        && let Some(path) = path.strip_prefix('$')
    {
        let path = path.strip_prefix('$').map_or_else(|| format!("CURRENT.{path}"), str::to_owned);
        let message = format!(
            "'${path}' is a field path reference which is not allowed in this context. Did you mean {{$literal: '${path}'}}?"
        );
        return Err(Failure::new(ErrorCode(4_161_108), message));
    }
    let is_literal =
        |document: DocumentRef<'_>| document.first().is_none_or(|first| matches!(first.name, "$literal" | "$const"));
    match (field, call.arguments[0].as_literal()) {
        (Some(ValueRef::Document(document)), _) if !is_literal(document) => Err(not_constant(&call)),
        (Some(ValueRef::Array(_)), _) | (_, None) => Err(not_constant(&call)),
        (_, Some(ValueRef::String(name))) if name.contains('\0') => {
            Err(call.failure(9_534_700, " requires 'field' to hold no zero byte"))
        }
        (_, Some(ValueRef::String(_))) => Ok(call),
        (_, Some(other)) => {
            let message = format!(" requires 'field' to evaluate to type String, but got {}", other.kind().alias());
            Err(call.failure(4_161_107, &message))
        }
    }
}

fn not_constant(call: &Call) -> Failure {
    call.failure(4_161_106, " requires 'field' to evaluate to a constant, but got a non-constant argument")
}

/// The input with the field replaced or appended, or removed if the value is missing. The arguments are the field, the
/// value (only `$setField` has it), and the input.
pub(super) fn with_field<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let last = call.arguments.len() - 1;
    let (name, input) = (call.argument(0, context)?, call.argument(last, context)?);
    let name = name.get().and_then(ValueRef::as_str).unwrap_or_default();
    if input.is_nullish() {
        return Ok(Evaluated::null());
    }
    let Some(ValueRef::Document(document)) = input.get() else {
        // MongoDB's message has this name for `$unsetField`, too.
        return Err(refuse((4_161_105, "$setField requires 'input' to evaluate to type Object"), ""));
    };
    let value = if last == 2 { call.argument(1, context)? } else { Evaluated::Missing };
    let mut changed = MadeDocument::new(call.name(), context);
    let mut pending = value.get();
    for element in document {
        if element.name != name {
            changed.append_field(element.name, element.value)?;
        } else if let Some(value) = pending.take() {
            changed.append(name, value)?;
        }
    }
    if let Some(value) = pending {
        changed.append(name, value)?;
    }
    Ok(changed.finish())
}
