//! `$bit`: and, or, xor on integers.

use super::{Effect, Modifier, Operator, Scene};
use crate::trie::Plan;
use bunko_bson::text::ElementText;
use bunko_bson::{DocumentRef, Element, StringUse, Value, ValueRef};
use bunko_errors::{Failure, Result};

pub(super) const OPERATOR: Operator = Operator { name: "$bit", strings: StringUse::AsBytes, parse };

#[derive(Clone, Copy, Debug)]
enum Gate {
    And,
    Or,
    Xor,
}

/// An integer with its width: an operation on two 32-bit integers stays 32-bit.
#[derive(Clone, Copy, Debug)]
enum Integer {
    Narrow(i32),
    Wide(i64),
}

impl Integer {
    fn of(value: ValueRef<'_>) -> Option<Self> {
        match value {
            ValueRef::Int32(number) => Some(Self::Narrow(number)),
            ValueRef::Int64(number) => Some(Self::Wide(number)),
            _ => None,
        }
    }

    fn widened(self) -> i64 {
        match self {
            Self::Narrow(number) => number.into(),
            Self::Wide(number) => number,
        }
    }
}

#[derive(Debug)]
struct Bit(Vec<(Gate, Integer)>);

fn parse(plan: &mut Plan, field: Element<'_>) -> Result<()> {
    let ValueRef::Document(operations) = field.value else {
        return Err(Failure::bad_value(format!(
            "The $bit modifier is not compatible with a {}. You must pass in an embedded document: {{$bit: {{field: {{and/or/xor: #}}}}",
            field.value.kind().alias()
        )));
    };
    plan.modify(field.name, Bit(parse_operations(operations)?))
}

fn parse_operations(operations: DocumentRef<'_>) -> Result<Vec<(Gate, Integer)>> {
    let parsed = operations.iter().map(parse_operation).collect::<Result<Vec<_>>>()?;
    if parsed.is_empty() {
        let message = "You must pass in at least one bitwise operation. The format is: {$bit: {field: {and/or/xor: #}}";
        return Err(Failure::bad_value(message));
    }
    Ok(parsed)
}

fn parse_operation(operation: Element<'_>) -> Result<(Gate, Integer)> {
    let gate = match operation.name {
        "and" => Gate::And,
        "or" => Gate::Or,
        "xor" => Gate::Xor,
        other => {
            return Err(Failure::bad_value(format!(
                "The $bit modifier only supports 'and', 'or', and 'xor', not '{other}' which is an unknown operator: {{{}}}",
                ElementText(operation)
            )));
        }
    };
    let operand = Integer::of(operation.value).ok_or_else(|| {
        Failure::bad_value(format!(
            "The $bit modifier field must be an Integer(32/64 bit); a '{}' is not supported here: {{{}}}",
            operation.value.kind().alias(),
            ElementText(operation)
        ))
    })?;
    Ok((gate, operand))
}

impl Modifier for Bit {
    fn modify<'a>(&'a self, current: Option<ValueRef<'a>>, scene: &Scene<'a>) -> Result<Effect<'a>> {
        scene.context.operation.work(self.0.len())?;
        let current = current.unwrap_or(ValueRef::Int32(0));
        let start = Integer::of(current).ok_or_else(|| {
            Failure::bad_value(format!(
                "Cannot apply $bit to a value of non-integral type.{} has the field {} of non-integer type {}",
                scene.id(),
                scene.trail.name(),
                current.kind().alias()
            ))
        })?;
        let result = self.0.iter().fold(start, |value, (gate, operand)| combine(*gate, value, *operand));
        Ok(Effect::Make(match result {
            Integer::Narrow(number) => Value::Int32(number),
            Integer::Wide(number) => Value::Int64(number),
        }))
    }
}

fn combine(gate: Gate, a: Integer, b: Integer) -> Integer {
    let (wide_a, wide_b) = (a.widened(), b.widened());
    let result = match gate {
        Gate::And => wide_a & wide_b,
        Gate::Or => wide_a | wide_b,
        Gate::Xor => wide_a ^ wide_b,
    };
    match (a, b) {
        // Both operands are sign-extended, so the result fits the narrow width.
        (Integer::Narrow(_), Integer::Narrow(_)) => Integer::Narrow(result as i32),
        _ => Integer::Wide(result),
    }
}
