//! `$stdDevPop`: the population's standard deviation.

use super::accumulate;
use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::accumulators;

pub(super) const OPERATOR: Operator =
    Operator { name: "$stdDevPop", strings: Strings::AsBytes, form: Form::Positional(Arity::Any), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    accumulate(call, context, accumulators::std_dev_pop::make())
}
