//! `$mergeObjects`: the fields of documents; the last value of a name wins.

use super::accumulate;
use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::accumulators;

pub(super) const OPERATOR: Operator =
    Operator { name: "$mergeObjects", strings: Strings::AsBytes, form: Form::Positional(Arity::Any), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    accumulate(call, context, accumulators::merge_objects::make(context.engine()))
}
