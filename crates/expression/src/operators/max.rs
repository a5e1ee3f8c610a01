//! `$max`: the greatest of several arguments, or of the elements of one array.

use super::accumulate;
use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::accumulators;

pub(super) const OPERATOR: Operator =
    Operator { name: "$max", strings: Strings::Collated, form: Form::Positional(Arity::Any), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    accumulate(call, context, accumulators::max::make())
}
