//! `$toUpper`: a string in upper case; ASCII letters only, as in MongoDB.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::made;
use crate::text::coerced;

pub(super) const OPERATOR: Operator =
    Operator { name: "$toUpper", strings: Strings::AsBytes, form: Form::Positional(Arity::Exactly(1)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    made::string(coerced(&call.argument(0, context)?)?.to_ascii_uppercase(), context)
}
