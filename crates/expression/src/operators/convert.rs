//! `$convert`: converts to a type, with values for failure and for null.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Parameters, Result};
use crate::conversion;
use crate::number::as_i32;
use crate::printed::printed_value;
use bunko_bson::{Type, ValueRef};
use bunko_errors::{ErrorCode, Failure};

const PARAMETERS: Parameters = Parameters {
    not_an_object: (9, "$convert expects an object of named arguments but found: {}"),
    unknown: (9, "$convert found an unknown argument: {}"),
    names: &[
        ("input", Some((9, "Missing 'input' parameter to $convert"))),
        ("to", Some((9, "Missing 'to' parameter to $convert"))),
        ("onError", None),
        ("onNull", None),
    ],
};

pub(super) const OPERATOR: Operator = Operator { name: "$convert", form: Form::Named(&PARAMETERS), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let value = call.argument(0, context)?;
    let target = call.argument(1, context)?;
    if value.is_nullish() {
        return if call.has(3) { call.argument(3, context) } else { Ok(Evaluated::null()) };
    }
    if target.is_nullish() {
        return Ok(Evaluated::null());
    }
    let kind = match target.get() {
        Some(ValueRef::Document(document)) => target_type(&Evaluated::from(document.get("type")))?,
        _ => target_type(&target)?,
    };
    match conversion::convert(value.or_null(), kind) {
        Err(failure) if call.has(2) && failure.code() == ErrorCode::CONVERSION_FAILURE => call.argument(2, context),
        converted => Ok(converted?.into()),
    }
}

/// A type by its alias or its number on the wire.
fn target_type(target: &Evaluated<'_>) -> Result<Type> {
    match target.get() {
        Some(ValueRef::String(alias)) => conversion::target_of_alias(alias),
        Some(number) if number.is_number() => {
            let code = as_i32(number).and_then(|code| i8::try_from(code).ok());
            code.and_then(|code| Type::from_byte(code as u8)).ok_or_else(|| {
                let found = printed_value(number);
                Failure::failed_to_parse(format!(
                    "In $convert, numeric value for 'to' does not correspond to a BSON type: {found}"
                ))
            })
        }
        _ => Err(Failure::failed_to_parse(
            "$convert's 'to' argument must be a string or number, but is ".to_owned() + target.type_name(),
        )),
    }
}
