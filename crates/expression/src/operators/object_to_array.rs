//! `$objectToArray`: a document's fields as `{k, v}`.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::made::{MadeArray, check_depth};
use bunko_bson::{DocumentBuf, ValueRef};

pub(super) const OPERATOR: Operator =
    Operator { name: "$objectToArray", strings: Strings::AsBytes, form: Form::Positional(Arity::Exactly(1)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let Some(value) = call.not_null(context)? else { return Ok(Evaluated::null()) };
    let Some(ValueRef::Document(document)) = value.get() else {
        return Err(call.failure(40390, &format!(" requires a document input, found: {}", value.type_name())));
    };
    let mut pairs = MadeArray::new(call.name(), context);
    for element in document {
        check_depth(element.value, 2)?;
        let pair = DocumentBuf::new().with("k", element.name).with("v", element.value);
        pairs.push_element(ValueRef::from(&pair))?;
    }
    Ok(pairs.finish())
}
