//! `$regexFindAll`: all matches of a regular expression, one after the other.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Parameters, Result, Strings};
use crate::ParseScope;
use crate::made::MadeArray;
use crate::regular_expression::{Search, parse_search};
use bunko_bson::ValueRef;

const PARAMETERS: Parameters = Parameters {
    not_an_object: (51103, "$regexFindAll expects an object of named arguments but found: {}"),
    unknown: (31024, "$regexFindAll found an unknown argument: {}"),
    names: &[
        ("input", Some((31022, "$regexFindAll requires 'input' parameter"))),
        ("regex", Some((31023, "$regexFindAll requires 'regex' parameter"))),
        ("options", None),
    ],
};

pub(super) const OPERATOR: Operator =
    Operator { name: "$regexFindAll", strings: Strings::AsBytes, form: Form::Special(parse), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let mut all = MadeArray::new(call.name(), context);
    if let Some(search) = Search::of(call, context)? {
        search.each(context.operation(), |found| {
            context.operation().work(16)?;
            all.push_element(ValueRef::from(&found.document))
        })?;
    }
    Ok(all.finish())
}

fn parse(operator: &'static Operator, value: ValueRef<'_>, scope: &ParseScope) -> Result<Call> {
    parse_search(operator, &PARAMETERS, value, scope)
}
