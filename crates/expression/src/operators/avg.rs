//! `$avg`: the mean of several arguments, or of the elements of one array.

use super::accumulate;
use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::accumulators;

pub(super) const OPERATOR: Operator =
    Operator { name: "$avg", strings: Strings::AsBytes, form: Form::Positional(Arity::Any), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    accumulate(call, context, accumulators::avg::make_of_doubles())
}
