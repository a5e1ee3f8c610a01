//! `$binarySize` of a string or binary data, `$bsonSize` of a document: in bytes.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use bunko_bson::ValueRef;

pub(super) const BINARY_SIZE: Operator = Operator {
    name: "$binarySize",
    strings: Strings::AsBytes,
    form: Form::Positional(Arity::Exactly(1)),
    evaluate: binary_size,
};
pub(super) const BSON_SIZE: Operator = Operator {
    name: "$bsonSize",
    strings: Strings::AsBytes,
    form: Form::Positional(Arity::Exactly(1)),
    evaluate: bson_size,
};

fn binary_size<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let Some(value) = call.not_null(context)? else { return Ok(Evaluated::null()) };
    match value.get() {
        Some(ValueRef::String(text)) => Ok((text.len() as i32).into()),
        Some(ValueRef::Binary { bytes, .. }) => Ok((bytes.len() as i32).into()),
        _ => Err(call.failure(51276, &format!(" requires a string or BinData argument, found: {}", value.type_name()))),
    }
}

fn bson_size<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let Some(value) = call.not_null(context)? else { return Ok(Evaluated::null()) };
    match value.get() {
        Some(ValueRef::Document(document)) => Ok((document.len_bytes() as i32).into()),
        _ => Err(call.failure(31393, &format!(" requires a document input, found: {}", value.type_name()))),
    }
}
