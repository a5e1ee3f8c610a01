//! `$trim`: a string without white space, or given characters, at both ends.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Parameters, Result, Strings};
use crate::trimming::{Ends, trimmed};

const PARAMETERS: Parameters = Parameters {
    not_an_object: (50696, "$trim only supports an object as an argument, found {}"),
    unknown: (50694, "$trim found an unknown argument: {}"),
    names: &[("input", Some((50695, "$trim requires an 'input' field"))), ("chars", None)],
};

pub(super) const OPERATOR: Operator =
    Operator { name: "$trim", strings: Strings::AsBytes, form: Form::Named(&PARAMETERS), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    trimmed(call, context, Ends::Both)
}
