//! `$unsetField`: a document without one field, by its plain name.

use super::set_field::{with_constant_field, with_field};
use super::{Call, Evaluated, EvaluationContext, Form, Operator, Parameters, ParseScope, Result, Strings};
use bunko_bson::ValueRef;

const PARAMETERS: Parameters = Parameters {
    not_an_object: (4_161_100, "$unsetField only supports an object as its argument"),
    unknown: (4_161_101, "$unsetField found an unknown argument: {}"),
    names: &[
        ("field", Some((4_161_102, "$unsetField requires 'field' to be specified"))),
        ("input", Some((4_161_109, "$unsetField requires 'input' to be specified"))),
    ],
};

pub(super) const OPERATOR: Operator =
    Operator { name: "$unsetField", strings: Strings::AsBytes, form: Form::Special(parse), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    with_field(call, context)
}

fn parse(operator: &'static Operator, value: ValueRef<'_>, scope: &ParseScope) -> Result<Call> {
    with_constant_field(operator, &PARAMETERS, value, scope)
}
