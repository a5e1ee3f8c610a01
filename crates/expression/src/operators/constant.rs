//! `$const`: the name that MongoDB prints for `$literal`.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};

pub(super) const OPERATOR: Operator =
    Operator { name: "$const", strings: Strings::AsBytes, form: Form::Constant, evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    call.argument(0, context)
}
