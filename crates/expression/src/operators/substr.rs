//! `$substr`: the old name of `$substrBytes`.

use super::substr_bytes::by_bytes;
use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result};

pub(super) const OPERATOR: Operator = Operator { name: "$substr", form: Form::Positional(Arity::Exactly(3)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    by_bytes(call, context)
}
