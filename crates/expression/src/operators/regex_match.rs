//! `$regexMatch`: whether a regular expression matches a string.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Parameters, Result, Strings};
use crate::ParseScope;
use crate::regular_expression::{Search, parse_search};
use bunko_bson::ValueRef;

const PARAMETERS: Parameters = Parameters {
    not_an_object: (51103, "$regexMatch expects an object of named arguments but found: {}"),
    unknown: (31024, "$regexMatch found an unknown argument: {}"),
    names: &[
        ("input", Some((31022, "$regexMatch requires 'input' parameter"))),
        ("regex", Some((31023, "$regexMatch requires 'regex' parameter"))),
        ("options", None),
    ],
};

pub(super) const OPERATOR: Operator =
    Operator { name: "$regexMatch", strings: Strings::AsBytes, form: Form::Special(parse), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let Some(search) = Search::of(call, context)? else { return Ok(false.into()) };
    Ok(search.is_match(context.operation())?.into())
}

fn parse(operator: &'static Operator, value: ValueRef<'_>, scope: &ParseScope) -> Result<Call> {
    parse_search(operator, &PARAMETERS, value, scope)
}
