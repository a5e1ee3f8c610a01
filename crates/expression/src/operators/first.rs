//! `$first`: the first element of an array.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::array::element_at;

pub(super) const OPERATOR: Operator =
    Operator { name: "$first", strings: Strings::AsBytes, form: Form::Positional(Arity::Exactly(1)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let Some(array) = call.not_null(context)? else { return Ok(Evaluated::null()) };
    element_at(call, context, array, 0, "'s argument must be an array, but is ")
}
