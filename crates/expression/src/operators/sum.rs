//! `$sum`: the sum of several arguments, or of the elements of one array; values that are no numbers are ignored.

use super::accumulate;
use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::accumulators;

pub(super) const OPERATOR: Operator =
    Operator { name: "$sum", strings: Strings::AsBytes, form: Form::Positional(Arity::Any), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    accumulate(call, context, accumulators::sum::make())
}
