//! `$let`: evaluates an expression with variables bound.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Parameters, Result, Strings, refuse};
use crate::made;
use crate::variables::check_defined_name;
use crate::{Expression, ParseScope};
use bunko_bson::ValueRef;

const PARAMETERS: Parameters = Parameters {
    not_an_object: (16874, "$let only supports an object as its argument"),
    unknown: (16875, "Unrecognized parameter to $let: {}"),
    names: &[
        ("vars", Some((16876, "Missing 'vars' parameter to $let"))),
        ("in", Some((16877, "Missing 'in' parameter to $let"))),
    ],
};

pub(super) const OPERATOR: Operator =
    Operator { name: "$let", strings: Strings::AsBytes, form: Form::Special(parse), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let last = call.arguments.len() - 1;
    let values = (0..last).map(|index| call.argument(index, context)).collect::<Result<Vec<_>>>()?;
    let values: Vec<_> = values.iter().map(Evaluated::get).collect();
    call.argument_with(last, context, &values, |evaluated| made::owned(evaluated, context))
}

fn parse(operator: &'static Operator, value: ValueRef<'_>, scope: &ParseScope) -> Result<Call> {
    let given = PARAMETERS.read(value)?;
    let variables = match given[0] {
        Some(ValueRef::Document(variables)) => variables,
        // An array is read as a document: its positions are refused as names of variables, and an empty array defines
        // none.
        Some(ValueRef::Array(variables)) => variables.as_document(),
        _ => return Err(refuse((10065, "invalid parameter: expected an object (vars)"), "")),
    };
    let body = given[1].unwrap_or(ValueRef::Null);
    // MongoDB reads all values before it looks at a name.
    let mut arguments =
        variables.iter().map(|variable| Expression::parse(variable.value, scope)).collect::<Result<Vec<_>>>()?;
    let names: Vec<_> = variables.iter().map(|variable| variable.name).collect();
    names.iter().try_for_each(|name| check_defined_name(name))?;
    let (inner, first_slot) = scope.bind(&names);
    arguments.push(Expression::parse(body, &inner)?);
    Ok(Call { first_slot, ..Call::new(operator, arguments) })
}
