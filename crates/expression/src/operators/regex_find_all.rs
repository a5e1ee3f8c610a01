//! `$regexFindAll`: all matches of a regular expression, one after the other.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Parameters, Result};
use crate::ParseScope;
use crate::regular_expression::{Search, parse_search};
use bunko_bson::{ArrayBuf, ValueRef};

const PARAMETERS: Parameters = Parameters {
    not_an_object: (51103, "$regexFindAll expects an object of named arguments but found: {}"),
    unknown: (31024, "$regexFindAll found an unknown argument: {}"),
    names: &[
        ("input", Some((31022, "$regexFindAll requires 'input' parameter"))),
        ("regex", Some((31023, "$regexFindAll requires 'regex' parameter"))),
        ("options", None),
    ],
};

pub(super) const OPERATOR: Operator = Operator { name: "$regexFindAll", form: Form::Special(parse), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let mut all = ArrayBuf::new();
    let Some(search) = Search::of(call, context)? else { return Ok(all.into()) };
    let mut from = 0;
    while let Some(found) = search.find_at(from)? {
        all.push(&found.document);
        // An empty match would be found again.
        let step = if found.end == found.start { search.character_bytes_at(found.end) } else { 0 };
        from = found.end + step;
        // MongoDB reports no empty match behind the last character.
        if from >= search.text().len() {
            break;
        }
    }
    Ok(all.into())
}

fn parse(operator: &'static Operator, value: ValueRef<'_>, scope: &ParseScope) -> Result<Call> {
    parse_search(operator, &PARAMETERS, value, scope)
}
