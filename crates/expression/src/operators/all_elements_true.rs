//! `$allElementsTrue`: whether all elements of an array are true.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings, any_element_true};

pub(super) const OPERATOR: Operator = Operator {
    name: "$allElementsTrue",
    strings: Strings::AsBytes,
    form: Form::Positional(Arity::Exactly(1)),
    evaluate,
};

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    Ok((!any_element_true::holds_element(call, context, 17040, false)?).into())
}
