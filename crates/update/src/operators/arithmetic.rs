//! Shared code of `$inc` and `$mul`.

use super::{Effect, Modifier, Scene};
use bunko_bson::arithmetic::{self, ArithmeticError};
use bunko_bson::text::{ElementText, ValueText};
use bunko_bson::{Element, Value, ValueRef, number, order};
use bunko_errors::{Failure, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Add,
    Multiply,
}

impl Operation {
    fn operator(self) -> &'static str {
        match self {
            Self::Add => "$inc",
            Self::Multiply => "$mul",
        }
    }

    fn verb(self) -> &'static str {
        match self {
            Self::Add => "increment",
            Self::Multiply => "multiply",
        }
    }

    fn run(self, a: ValueRef<'_>, b: ValueRef<'_>) -> Result<Value, ArithmeticError> {
        match self {
            Self::Add => arithmetic::add(a, b),
            Self::Multiply => arithmetic::multiply(a, b),
        }
    }
}

#[derive(Debug)]
pub(super) struct Arithmetic {
    operation: Operation,
    operand: Value,
}

impl Arithmetic {
    /// # Errors
    /// `TypeMismatch` for an argument that is not a number.
    pub fn parse(operation: Operation, field: Element<'_>) -> Result<Self> {
        if !field.value.is_number() {
            return Err(Failure::type_mismatch(format!(
                "Cannot {} with non-numeric argument: {{{}}}",
                operation.verb(),
                ElementText(field)
            )));
        }
        Ok(Self { operation, operand: field.value.to_value() })
    }

    /// A missing field counts as zero; the result has the argument's type.
    fn create(&self) -> Effect<'_> {
        match self.operation {
            Operation::Add => Effect::Set(self.operand.as_ref()),
            Operation::Multiply => {
                let zero = arithmetic::multiply(self.operand.as_ref(), ValueRef::Int32(0));
                zero.map_or(Effect::Keep, Effect::Make)
            }
        }
    }
}

impl Modifier for Arithmetic {
    fn modify<'a>(&'a self, current: Option<ValueRef<'a>>, scene: &Scene<'a>) -> Result<Effect<'a>> {
        let Some(current) = current else { return Ok(self.create()) };
        let operator = self.operation.operator();
        match self.operation.run(current, self.operand.as_ref()) {
            Ok(result) => Ok(became(current, result)),
            Err(ArithmeticError::NotNumeric) => Err(Failure::type_mismatch(format!(
                "Cannot apply {operator} to a value of non-numeric type. {{{}}} has the field '{}' of non-numeric type {}",
                scene.id(),
                scene.trail.name(),
                current.kind().alias()
            ))),
            Err(ArithmeticError::Overflow) => Err(Failure::bad_value(format!(
                "Failed to apply {operator} operations to current value ({}) for document {{{}}}",
                typed(current),
                scene.id()
            ))),
        }
    }
}

/// The effect of a result. Numbers are compared by value: decimal 1.00 in place of 1.0 is not a change, and `NaN` differs
/// from itself.
fn became(current: ValueRef<'_>, result: Value) -> Effect<'static> {
    let number = result.as_ref();
    if number::as_f64(number).is_some_and(f64::is_nan) {
        Effect::MakeOther(result)
    } else if number.kind() == current.kind() && order::equal(number, current) {
        Effect::Keep
    } else {
        Effect::Make(result)
    }
}

/// A number with its type name, as the overflow message shows it.
fn typed(number: ValueRef<'_>) -> String {
    let kind = match number {
        ValueRef::Int32(_) => "NumberInt",
        ValueRef::Int64(_) => "NumberLong",
        ValueRef::Double(_) => "NumberDouble",
        _ => "NumberDecimal",
    };
    format!("({kind}){}", ValueText(number))
}
