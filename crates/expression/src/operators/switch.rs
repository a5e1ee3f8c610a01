//! `$switch`: the value beside the first true case.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Parameters, Result, Strings, refuse};
use crate::{Expression, ParseScope};
use bunko_bson::ValueRef;
use bunko_errors::Failure;

const PARAMETERS: Parameters = Parameters {
    not_an_object: (40060, "$switch requires an object as an argument, found: {}"),
    unknown: (40067, "$switch found an unknown argument: {}"),
    names: &[("branches", None), ("default", None)],
};

const BRANCH: Parameters = Parameters {
    not_an_object: (40062, "$switch expected each branch to be an object, found: {}"),
    unknown: (40063, "$switch found an unknown argument to a branch: {}"),
    names: &[
        ("case", Some((40064, "$switch requires each branch have a 'case' expression"))),
        ("then", Some((40065, "$switch requires each branch have a 'then' expression."))),
    ],
};

pub(super) const OPERATOR: Operator =
    Operator { name: "$switch", strings: Strings::AsBytes, form: Form::Special(parse), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let default = call.arguments.len() - 1;
    for case in (0..default).step_by(2) {
        if call.argument(case, context)?.is_true() {
            return call.argument(case + 1, context);
        }
    }
    if call.has(default) {
        return call.argument(default, context);
    }
    let message = "$switch could not find a matching branch for an input, and no default was specified.";
    Err(Failure::new(context.engine().code(40066, 7_158_303), message))
}

/// Arguments are case and value of each branch, and the default after them.
fn parse(operator: &'static Operator, value: ValueRef<'_>, scope: &ParseScope) -> Result<Call> {
    let given = PARAMETERS.read(value)?;
    let mut arguments = Vec::new();
    if let Some(branches) = given[0] {
        let Some(branches) = branches.as_array() else {
            let found = branches.kind().alias();
            return Err(refuse((40061, "$switch expected an array for 'branches', found: {}"), found));
        };
        let unreached = scope.unreached();
        let mut reached = scope;
        for branch in branches.iter() {
            let branch = BRANCH.parse(branch, reached)?;
            if branch[0].as_literal().is_some_and(|case| Evaluated::Ref(case).is_true()) {
                reached = &unreached;
            }
            arguments.extend(branch);
        }
    }
    if arguments.is_empty() {
        return Err(refuse((40068, "$switch requires at least one branch."), ""));
    }
    arguments.push(given[1].map_or(Ok(Expression::ABSENT), |value| Expression::parse(value, scope))?);
    Ok(Call::new(operator, arguments))
}
