//! `$replaceAll`: a string with all occurrences of another replaced.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Parameters, Result, Strings};
use crate::string_arguments::replaced;

const PARAMETERS: Parameters = Parameters {
    not_an_object: (51751, "$replaceAll requires an object as an argument, found: {}"),
    unknown: (51750, "$replaceAll found an unknown argument: {}"),
    names: &[
        ("input", Some((51749, "$replaceAll requires 'input' to be specified"))),
        ("find", Some((51748, "$replaceAll requires 'find' to be specified"))),
        ("replacement", Some((51747, "$replaceAll requires 'replacement' to be specified"))),
    ],
};

pub(super) const OPERATOR: Operator =
    Operator { name: "$replaceAll", strings: Strings::AsBytes, form: Form::Named(&PARAMETERS), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    replaced(call, context, usize::MAX)
}
