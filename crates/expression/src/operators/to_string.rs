//! `$toString`: converts to a string; null stays null.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::binary_text::{self, Format};
use crate::conversion;
use crate::made;
use bunko_bson::{Type, ValueRef};

pub(super) const OPERATOR: Operator =
    Operator { name: "$toString", strings: Strings::AsBytes, form: Form::Positional(Arity::Conversion), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let Some(value) = call.not_null(context)? else { return Ok(Evaluated::null()) };
    match value.or_null() {
        ValueRef::Binary { subtype, bytes } => made::string(binary_text::write(subtype, bytes, Format::Auto)?, context),
        other => made::checked(conversion::convert(other, Type::String)?, context),
    }
}
