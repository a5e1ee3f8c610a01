//! `$literal`: its argument as written, never an expression.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Result};
use bunko_bson::ValueRef;
use crate::{Expression, ParseScope};

pub(super) const OPERATOR: Operator = Operator { name: "$literal", form: Form::Special(parse), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    call.argument(0, context)
}

// Parsing makes a literal of it before a call is made; the entry exists so that the name is known.
fn parse(operator: &'static Operator, value: ValueRef<'_>, _scope: &ParseScope) -> Result<Call> {
    Ok(Call::new(operator, vec![Expression::literal(value.to_value())]))
}
