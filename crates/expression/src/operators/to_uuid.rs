//! `$toUUID`: reads a UUID from its text; null stays null.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::binary_text::{self, Format};
use crate::conversion;
use bunko_bson::{BinarySubtype, Type, ValueRef};

pub(super) const OPERATOR: Operator =
    Operator { name: "$toUUID", strings: Strings::AsBytes, form: Form::Positional(Arity::Conversion), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let Some(value) = call.not_null(context)? else { return Ok(Evaluated::null()) };
    match value.or_null() {
        ValueRef::String(text) => Ok(binary_text::read(text, BinarySubtype::UUID, Format::Uuid)?.into()),
        uuid @ ValueRef::Binary { subtype: BinarySubtype::UUID, .. } => Ok(uuid.to_value().into()),
        other => Ok(conversion::convert(other, Type::Binary)?.into()),
    }
}
