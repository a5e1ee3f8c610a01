//! `$dateSubtract`: a date, moved earlier by an amount of a unit.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Parameters, Result, Strings};
use crate::date_part;

const PARAMETERS: Parameters = Parameters {
    not_an_object: (5_166_400, "$dateSubtract expects an object as its argument.found type:{}"),
    unknown: (
        5_166_401,
        "Unrecognized argument to $dateSubtract: {}. Expected arguments are startDate, unit, amount, and optionally timezone.",
    ),
    names: &[
        ("startDate", Some((5_166_402, "$dateSubtract requires startDate, unit, and amount to be present"))),
        ("unit", Some((5_166_402, "$dateSubtract requires startDate, unit, and amount to be present"))),
        ("amount", Some((5_166_402, "$dateSubtract requires startDate, unit, and amount to be present"))),
        ("timezone", None),
    ],
};

pub(super) const OPERATOR: Operator =
    Operator { name: "$dateSubtract", strings: Strings::AsBytes, form: Form::Named(&PARAMETERS), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    date_part::shifted(call, context, -1)
}
