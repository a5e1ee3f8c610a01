//! `$literal`: its argument as written, never an expression.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};

pub(super) const OPERATOR: Operator =
    Operator { name: "$literal", strings: Strings::AsBytes, form: Form::Constant, evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    call.argument(0, context)
}
