//! `$percentile` and `$median` of numbers: of the elements of an array, or of the values of several expressions.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::call::Prepared;
use crate::percentiles::{self, Digest, UsedAs};
use crate::{Expression, ParseScope};
use bunko_bson::ValueRef;

pub(super) const PERCENTILE: Operator = Operator {
    name: "$percentile",
    strings: Strings::AsBytes,
    form: Form::Special(parse_percentile),
    evaluate: percentile,
};
pub(super) const MEDIAN: Operator =
    Operator { name: "$median", strings: Strings::AsBytes, form: Form::Special(parse_median), evaluate: median };

fn percentile<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let Prepared::Percentiles(wanted) = &call.prepared else { return Ok(Evaluated::null()) };
    Ok(digest(call, context)?.percentiles(wanted).into())
}

fn median<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    Ok(digest(call, context)?.percentile(0.5).map_or(Evaluated::null(), Evaluated::from))
}

fn digest<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Digest> {
    let mut digest = Digest::default();
    let input = call.argument(0, context)?;
    match input.get() {
        Some(ValueRef::Array(array)) => {
            for element in array.iter() {
                context.operation().work(1)?;
                digest.add(element);
            }
        }
        Some(value) => digest.add(value),
        None => {}
    }
    Ok(digest)
}

fn parse_percentile(operator: &'static Operator, value: ValueRef<'_>, scope: &ParseScope) -> Result<Call> {
    let (input, wanted) = percentiles::parse_percentile(value, scope, UsedAs::Expression)?;
    Ok(Call { prepared: Prepared::Percentiles(wanted), ..Call::new(operator, vec![input]) })
}

fn parse_median(operator: &'static Operator, value: ValueRef<'_>, scope: &ParseScope) -> Result<Call> {
    let input: Expression = percentiles::parse_median(value, scope, UsedAs::Expression)?;
    Ok(Call::new(operator, vec![input]))
}
