//! `$replaceOne`: a string with the first occurrence of another replaced.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Parameters, Result, Strings};
use crate::string_arguments::replaced;

const PARAMETERS: Parameters = Parameters {
    not_an_object: (51751, "$replaceOne requires an object as an argument, found: {}"),
    unknown: (51750, "$replaceOne found an unknown argument: {}"),
    names: &[
        ("input", Some((51749, "$replaceOne requires 'input' to be specified"))),
        ("find", Some((51748, "$replaceOne requires 'find' to be specified"))),
        ("replacement", Some((51747, "$replaceOne requires 'replacement' to be specified"))),
    ],
};

pub(super) const OPERATOR: Operator =
    Operator { name: "$replaceOne", strings: Strings::AsBytes, form: Form::Named(&PARAMETERS), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    replaced(call, context, 1)
}
