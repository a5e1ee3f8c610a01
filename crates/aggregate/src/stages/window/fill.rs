//! `$locf` and `$linearFill`: replace null and missing values.

use super::partition::{At, Partition};
use super::slope::{Arithmetic, computed};
use super::{Call, Function, Running};
use crate::Environment;
use bunko_bson::{Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::Expression;
use std::sync::Arc;

enum Fill {
    /// The last value before the document.
    Last(Expression),
    /// Interpolated between the values before and after the document.
    Linear(Expression, Box<Arithmetic>),
}

pub(super) fn parse(call: &Call<'_>) -> Result<Arc<dyn Function>> {
    call.without_window()?;
    let input = call.expression(call.argument)?;
    if call.name == "$locf" {
        return Ok(Arc::new(Fill::Last(input)));
    }
    if call.directions().len() != 1 {
        let message = "$linearFill must be specified with a top level sortBy expression with exactly one element";
        return Err(Failure::new(ErrorCode(605_001), message));
    }
    Ok(Arc::new(Fill::Linear(input, Box::new(Arithmetic::between()?))))
}

impl Function for Fill {
    fn begin(self: Arc<Self>) -> Box<dyn Running> {
        Box::new(Filling { fill: self, before: None, behind: None })
    }
}

struct Filling {
    fill: Arc<Fill>,
    /// The last value, and its position.
    before: Option<(usize, Value)>,
    /// The next value and its position, if searched; the value is null if there is none up to the end.
    behind: Option<(usize, Value)>,
}

fn evaluated(input: &Expression, partition: &Partition, position: usize, environment: &Environment) -> Result<Value> {
    let at = partition.at(position, environment)?;
    let value = input.evaluate(&environment.context(at.document()))?.into_value();
    Ok(value.filter(|value| !value.as_ref().is_nullish()).unwrap_or(Value::Null))
}

impl Running for Filling {
    fn value(&mut self, partition: &Partition, position: usize, environment: &Environment) -> Result<Value> {
        let fill = Arc::clone(&self.fill);
        let (Fill::Last(input) | Fill::Linear(input, _)) = &*fill;
        let value = evaluated(input, partition, position, environment)?;
        if let Fill::Linear(_, arithmetic) = &*fill {
            check_order(partition, position, environment)?;
            return self.on_line(value, input, arithmetic, partition, position, environment);
        }
        if !matches!(value, Value::Null) {
            self.before = Some((position, value));
        }
        Ok(self.before.as_ref().map_or(Value::Null, |(_, value)| value.clone()))
    }
}

impl Filling {
    fn on_line(
        &mut self,
        value: Value,
        input: &Expression,
        arithmetic: &Arithmetic,
        partition: &Partition,
        position: usize,
        environment: &Environment,
    ) -> Result<Value> {
        if !matches!(value, Value::Null) {
            if !value.as_ref().is_number() {
                let found = value.as_ref().kind().alias();
                let message = format!("Value to be filled must be numeric or nullish, but found {found}");
                return Err(Failure::type_mismatch(message));
            }
            self.before = Some((position, value.clone()));
            return Ok(value);
        }
        let Some((left, low)) = &self.before else { return Ok(Value::Null) };
        if self.behind.as_ref().is_none_or(|(behind, _)| *behind <= position) {
            let mut next = position + 1;
            let mut found = Value::Null;
            while next < partition.count() {
                environment.operation().work(1)?;
                found = evaluated(input, partition, next, environment)?;
                if !matches!(found, Value::Null) {
                    break;
                }
                next += 1;
            }
            self.behind = Some((next, found));
        }
        let Some((right, high)) = self.behind.as_ref().filter(|(_, value)| !matches!(value, Value::Null)) else {
            return Ok(Value::Null);
        };
        let at = |position| partition.at(position, environment);
        let (at0, at, at1) = (at(*left)?, at(position)?, at(*right)?);
        let [x0, x, x1] = [&at0, &at, &at1].map(At::sort_value);
        computed(
            arithmetic,
            &[("x0", x0), ("x", x), ("x1", x1), ("y0", low.as_ref()), ("y1", high.as_ref())],
            environment,
        )
    }
}

/// Fails if the sort value is neither number nor date, or repeats the previous one: nothing can be interpolated then.
fn check_order(partition: &Partition, position: usize, environment: &Environment) -> Result<()> {
    let at = partition.at(position, environment)?;
    let value = at.sort_value();
    if !value.is_number() && !matches!(value, ValueRef::DateTime(_)) {
        let found = value.kind().alias();
        let message = format!("$linearFill sortBy field must be numeric or a date, but found {found}");
        return Err(Failure::type_mismatch(message));
    }
    if position > 0 && at.order() == partition.at(position - 1, environment)?.order() {
        let message = "There can be no repeated values in the sort field";
        return Err(Failure::new(ErrorCode(6_050_106), message));
    }
    Ok(())
}
