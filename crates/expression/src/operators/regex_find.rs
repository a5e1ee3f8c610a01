//! `$regexFind`: the first match of a regular expression: `match`, `idx` in characters, `captures`.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Parameters, Result, Strings};
use crate::ParseScope;
use crate::regular_expression::{Search, parse_search};
use bunko_bson::{Value, ValueRef};

const PARAMETERS: Parameters = Parameters {
    not_an_object: (51103, "$regexFind expects an object of named arguments but found: {}"),
    unknown: (31024, "$regexFind found an unknown argument: {}"),
    names: &[
        ("input", Some((31022, "$regexFind requires 'input' parameter"))),
        ("regex", Some((31023, "$regexFind requires 'regex' parameter"))),
        ("options", None),
    ],
};

pub(super) const OPERATOR: Operator =
    Operator { name: "$regexFind", strings: Strings::AsBytes, form: Form::Special(parse), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let Some(search) = Search::of(call, context)? else { return Ok(Evaluated::null()) };
    Ok(search
        .find(context.operation())?
        .map_or(Evaluated::null(), |found| Evaluated::Owned(Value::Document(found.document))))
}

fn parse(operator: &'static Operator, value: ValueRef<'_>, scope: &ParseScope) -> Result<Call> {
    parse_search(operator, &PARAMETERS, value, scope)
}
