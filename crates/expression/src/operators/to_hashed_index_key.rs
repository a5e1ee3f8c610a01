//! `$toHashedIndexKey`: the hash that a hashed index has for a value; a missing value counts as null.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::made;
use bunko_bson::hashed_key;

pub(super) const OPERATOR: Operator = Operator {
    name: "$toHashedIndexKey",
    strings: Strings::AsBytes,
    form: Form::Positional(Arity::Exactly(1)),
    evaluate,
};

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let value = call.argument(0, context)?;
    context.operation().work(made::steps(value.or_null()))?;
    Ok(hashed_key(value.or_null()).into())
}
