//! `$rtrim`: a string without white space, or given characters, at its end.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Parameters, Result, Strings};
use crate::trimming::{Ends, trimmed};

const PARAMETERS: Parameters = Parameters {
    not_an_object: (50696, "$rtrim only supports an object as an argument, found {}"),
    unknown: (50694, "$rtrim found an unknown argument: {}"),
    names: &[("input", Some((50695, "$rtrim requires an 'input' field"))), ("chars", None)],
};

pub(super) const OPERATOR: Operator =
    Operator { name: "$rtrim", strings: Strings::AsBytes, form: Form::Named(&PARAMETERS), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    trimmed(call, context, Ends::End)
}
