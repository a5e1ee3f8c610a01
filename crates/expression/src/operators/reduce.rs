//! `$reduce`: folds an array. `$$value` is the result so far, `$$this` the element.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Parameters, Result, Strings, cond, refuse};
use crate::expression::Node;
use crate::gathering::{self, Gathered};
use crate::made::{self, MadeArray};
use crate::printed::printed;
use crate::variables::Variable;
use crate::{Expression, ParseScope};
use bunko_bson::{ArrayBuf, ArrayRef, Value, ValueRef};

const PARAMETERS: Parameters = Parameters {
    not_an_object: (40075, "$reduce requires an object as an argument, found: {}"),
    unknown: (40076, "$reduce found an unknown argument: {}"),
    names: &[
        ("input", Some((40077, "$reduce requires 'input' to be specified"))),
        ("initialValue", Some((40078, "$reduce requires 'initialValue' to be specified"))),
        ("in", Some((40079, "$reduce requires 'in' to be specified"))),
    ],
};

pub(super) const OPERATOR: Operator =
    Operator { name: "$reduce", strings: Strings::AsBytes, form: Form::Special(parse), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let Some(input) = call.not_null(context)? else { return Ok(Evaluated::null()) };
    let Some(ValueRef::Array(array)) = input.get() else {
        return Err(refuse((40080, "$reduce requires that 'input' be an array, found: {}"), &printed(&input)));
    };
    if only_adds(&call.arguments[2], call.first_slot) {
        return gathered(call, array, context);
    }
    let mut value = call.argument(1, context)?;
    for element in array.iter() {
        context.operation().work(1)?;
        let values = [value.get(), Some(element)];
        let binding = call.binding(context, &values);
        let step = step(&call.arguments[2], call.first_slot, &context.bound(&binding))?;
        value = match step {
            Step::Kept => value,
            Step::Element => Evaluated::Ref(element),
            Step::Made(made) => made,
            Step::Longer(addition) => extended(value, addition, context)?,
        };
    }
    made::owned(value, context)
}

/// Whether a body uses `$$value` only to return it or to append to it.
fn only_adds(body: &Expression, value_slot: u32) -> bool {
    match &body.node {
        node if is_variable(node, value_slot) => true,
        Node::Call(call) if call.operator.name == cond::OPERATOR.name => {
            !call.arguments[0].reads(Variable::Local(value_slot))
                && call.arguments[1..].iter().all(|branch| only_adds(branch, value_slot))
        }
        Node::Call(call) if gathering::adds(call) => call.arguments.split_first().is_some_and(|(first, others)| {
            is_variable(&first.node, value_slot) && !others.iter().any(|other| other.reads(Variable::Local(value_slot)))
        }),
        _ => false,
    }
}

/// Evaluates `$reduce` for a body that [`only_adds`], without copying `$$value` for each element.
fn gathered<'a>(call: &'a Call, array: ArrayRef<'_>, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let mut value = Gathered::Value(call.argument(1, context)?);
    for element in array.iter() {
        context.operation().work(1)?;
        let values = [None, Some(element)];
        let binding = call.binding(context, &values);
        let context = context.bound(&binding);
        let mut body = &call.arguments[2];
        while let Node::Call(call) = &body.node {
            if gathering::adds(call) {
                value = value.with(call, &context)?;
                break;
            }
            body = cond::chosen(call, &context)?;
        }
    }
    made::owned(value.settled(context)?, context)
}

/// The new `$$value` after one element.
enum Step {
    /// `$$value` unchanged.
    Kept,
    /// `$$this`.
    Element,
    /// `$$value` with this appended.
    Longer(Addition),
    Made(Evaluated<'static>),
}

enum Addition {
    Elements(ArrayBuf),
    Text(String),
}

/// Evaluates the body. An appended part is returned separately, so that `$$value` is not copied each time: gathering an
/// array or a text is a common use of `$reduce`.
fn step<'a>(body: &'a Expression, value_slot: u32, context: &EvaluationContext<'a>) -> Result<Step> {
    match &body.node {
        node if is_variable(node, value_slot) => return Ok(Step::Kept),
        node if is_variable(node, value_slot + 1) => return Ok(Step::Element),
        Node::Call(call) if call.operator.name == cond::OPERATOR.name => {
            return step(cond::chosen(call, context)?, value_slot, context);
        }
        Node::Call(call) if call.arguments.first().is_some_and(|first| is_variable(&first.node, value_slot)) => {
            let value = context.variable(Variable::Local(value_slot));
            let addition = match (call.operator.name, value) {
                ("$concatArrays", Some(ValueRef::Array(_))) => elements_behind(call, context)?,
                ("$concat", Some(ValueRef::String(_))) => text_behind(call, context)?,
                _ => None,
            };
            if let Some(addition) = addition {
                return Ok(Step::Longer(addition));
            }
        }
        _ => {}
    }
    Ok(Step::Made(made::owned(body.evaluate(context)?, context)?))
}

fn is_variable(node: &Node, slot: u32) -> bool {
    matches!(node, Node::Path { variable: Variable::Local(found), path, .. } if *found == slot && path.is_empty())
}

/// The elements that `$concatArrays` appends to its first argument; `None` if another argument is not an array.
fn elements_behind<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Option<Addition>> {
    let mut elements = MadeArray::new(call.name(), context);
    for index in 1..call.arguments.len() {
        let value = call.argument(index, context)?;
        let Some(ValueRef::Array(array)) = value.get() else { return Ok(None) };
        elements.extend(array.iter())?;
    }
    Ok(Some(Addition::Elements(elements.into_array())))
}

/// The text that `$concat` appends to its first argument; `None` if another argument is not a string.
fn text_behind<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Option<Addition>> {
    let mut text = String::new();
    for index in 1..call.arguments.len() {
        let value = call.argument(index, context)?;
        let Some(ValueRef::String(part)) = value.get() else { return Ok(None) };
        context.operation().work(made::text_steps(part))?;
        made::check_string_length(text.len() + part.len())?;
        text.push_str(part);
    }
    Ok(Some(Addition::Text(text)))
}

/// Appends an addition to the value. A value that is already owned grows in place.
fn extended<'v>(value: Evaluated<'v>, addition: Addition, context: &EvaluationContext<'_>) -> Result<Evaluated<'v>> {
    match (made::owned(value, context)?, addition) {
        (Evaluated::Owned(Value::Array(array)), Addition::Elements(elements)) => {
            let mut array = MadeArray::with(array, "$concatArrays", context);
            array.extend(elements.as_ref().iter())?;
            Ok(array.finish())
        }
        (Evaluated::Owned(Value::String(mut text)), Addition::Text(behind)) => {
            made::check_string_length(text.len() + behind.len())?;
            text.push_str(&behind);
            Ok(Evaluated::Owned(Value::String(text)))
        }
        // An addition always has the type of the value.
        (value, _) => Ok(value),
    }
}

fn parse(operator: &'static Operator, value: ValueRef<'_>, scope: &ParseScope) -> Result<Call> {
    let given = PARAMETERS.read(value)?;
    let (inner, first_slot) = scope.bind(&["value", "this"]);
    let mut arguments = Vec::new();
    for (value, scope) in given.into_iter().zip([scope, scope, &inner]) {
        arguments.push(value.map_or(Ok(Expression::ABSENT), |value| Expression::parse(value, scope))?);
    }
    Ok(Call { first_slot, ..Call::new(operator, arguments) })
}
