//! `$in`: whether an array holds a value.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::expression::{Expression, Node};
use crate::made;
use bunko_bson::{StringOrder, ValueRef};

pub(super) const OPERATOR: Operator =
    Operator { name: "$in", strings: Strings::Collated, form: Form::Positional(Arity::Exactly(2)), evaluate };

/// `$in` that compares strings by their bytes, whatever the collation is.
static BY_BYTES: Operator = Operator {
    name: "$in",
    strings: Strings::AsBytes,
    form: Form::Positional(Arity::Exactly(2)),
    evaluate: |call, context| is_in(call, context, StringOrder::BYTES),
};

impl Expression {
    /// The expression as a condition of a filter, where some lists of values are compared without the collation.
    #[must_use]
    pub fn in_filter(mut self) -> Self {
        by_bytes_in_filters(&mut self);
        self
    }
}

/// Has a condition of a filter compare strings by their bytes where MongoDB does so, whatever the collation is: it turns
/// `{$in: ['$field', [constants]]}`, alone or under `$and` and `$or`, into a condition on the field that has no collation. It
/// does so for values that an index would find: no null, regular expression or array is among them; and for a `$or` only if
/// each of its branches is turned into a condition.
/// Source: MongoDB 8.1, queries of `jstests/core/query/expr/expr_in_index_use.js`.
fn by_bytes_in_filters(expression: &mut Expression) {
    let Node::Call(call) = &mut expression.node else { return };
    match call.operator.name {
        "$in" if is_condition_on_field(call) => call.operator = &BY_BYTES,
        "$and" => call.arguments.iter_mut().for_each(by_bytes_in_filters),
        "$or" if call.arguments.iter().all(becomes_condition) => {
            call.arguments.iter_mut().for_each(by_bytes_in_filters);
        }
        _ => {}
    }
}

/// Whether MongoDB turns some of an expression into a condition on a field.
fn becomes_condition(expression: &Expression) -> bool {
    let Node::Call(call) = &expression.node else { return false };
    match call.operator.name {
        "$in" => is_condition_on_field(call),
        "$and" => call.arguments.iter().any(becomes_condition),
        "$or" => call.arguments.iter().all(becomes_condition),
        "$eq" | "$gt" | "$gte" | "$lt" | "$lte" => {
            let is_constant = |value: Option<ValueRef<'_>>| {
                value.is_some_and(|value| !matches!(value, ValueRef::Array(_) | ValueRef::Undefined))
            };
            let [left, right] = &call.arguments[..] else { return false };
            left.as_field().is_some() && is_constant(right.as_literal())
                || right.as_field().is_some() && is_constant(left.as_literal())
        }
        _ => false,
    }
}

fn is_condition_on_field(call: &Call) -> bool {
    let [field, list] = &call.arguments[..] else { return false };
    let is_plain =
        |value: ValueRef<'_>| !value.is_nullish() && !matches!(value, ValueRef::Array(_) | ValueRef::Regex { .. });
    let constants = list.as_literal().and_then(ValueRef::as_array);
    field.as_field().is_some() && constants.is_some_and(|constants| constants.iter().all(is_plain))
}

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    is_in(call, context, context.strings())
}

fn is_in<'a>(call: &'a Call, context: &EvaluationContext<'a>, strings: &StringOrder) -> Result<Evaluated<'a>> {
    let (value, array) = (call.argument(0, context)?, call.argument(1, context)?);
    let Some(ValueRef::Array(elements)) = array.get() else {
        return Err(
            call.failure(40081, &format!(" requires an array as a second argument, found: {}", array.type_name()))
        );
    };
    let wanted = value.comparable();
    let steps = made::steps(wanted);
    for element in elements.iter() {
        context.operation().work(steps)?;
        if strings.equal(element, wanted) {
            return Ok(true.into());
        }
    }
    Ok(false.into())
}
