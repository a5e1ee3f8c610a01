//! `$firstN`, `$lastN`, `$maxN`, `$minN`: at most `n` elements of an array.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Parameters, Result, Strings};
use crate::accumulators::{self, INPUT_AND_COUNT, RANKED_INPUT_AND_COUNT, Which};
use crate::made;
use bunko_bson::ValueRef;

pub(super) const FIRST_N: Operator = operator("$firstN", Strings::AsBytes, &INPUT_AND_COUNT, first_n);
pub(super) const LAST_N: Operator = operator("$lastN", Strings::AsBytes, &INPUT_AND_COUNT, last_n);
pub(super) const MAX_N: Operator = operator("$maxN", Strings::Collated, &RANKED_INPUT_AND_COUNT, max_n);
pub(super) const MIN_N: Operator = operator("$minN", Strings::Collated, &RANKED_INPUT_AND_COUNT, min_n);

type Evaluate = for<'a> fn(&'a Call, &EvaluationContext<'a>) -> Result<Evaluated<'a>>;

const fn operator(
    name: &'static str,
    strings: Strings,
    parameters: &'static Parameters,
    evaluate: Evaluate,
) -> Operator {
    Operator { name, strings, form: Form::Named(parameters), evaluate }
}

fn first_n<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    several(call, context, Which::First)
}

fn last_n<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    several(call, context, Which::Last)
}

fn max_n<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    several(call, context, Which::Greatest)
}

fn min_n<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    several(call, context, Which::Least)
}

fn several<'a>(call: &'a Call, context: &EvaluationContext<'a>, which: Which) -> Result<Evaluated<'a>> {
    let count = accumulators::read_count(&call.argument(0, context)?)?;
    let input = call.argument(1, context)?;
    let Some(ValueRef::Array(array)) = input.get() else {
        return Err(call.failure(5_788_200, ": Input must be an array"));
    };
    let mut kept = accumulators::several(count, which);
    kept.collate(context.strings());
    for element in array.iter() {
        context.operation().work(made::steps(element))?;
        kept.add(Evaluated::Ref(element))?;
    }
    Ok(kept.finish().into())
}
