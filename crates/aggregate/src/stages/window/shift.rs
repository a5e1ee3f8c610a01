//! `$shift`: the value of another document at a given distance.

use super::partition::Partition;
use super::{Call, Function, Running};
use crate::Environment;
use bunko_bson::{Value, number};
use bunko_errors::Result;
use bunko_expression::Expression;
use std::sync::Arc;

struct Shift {
    output: Expression,
    by: i64,
    default: Option<Value>,
}

pub(super) fn parse(call: &Call<'_>) -> Result<Arc<dyn Function>> {
    call.without_window()?;
    if call.directions().is_empty() {
        return Err(call.refusal("requires a sortBy"));
    }
    let [output, by, default] = call.arguments(["output", "by", "default"])?;
    let output = output.ok_or_else(|| call.refusal("requires an 'output' expression."))?;
    let by = by.ok_or_else(|| call.refusal("requires 'by' as an integer value."))?;
    let by = number::as_i64_exact(by).and_then(|by| i32::try_from(by).ok());
    let by = by.ok_or_else(|| call.refusal("requires 'by' as an integer value."))?;
    let default = default.map(|default| {
        let constant = call.expression(default)?.constant_value(call.scope)?;
        constant.ok_or_else(|| call.refusal("requires 'default' to be a constant expression."))
    });
    let default = default.transpose()?;
    Ok(Arc::new(Shift { output: call.expression(output)?, by: i64::from(by), default }))
}

impl Function for Shift {
    fn begin(self: Arc<Self>) -> Box<dyn Running> {
        Box::new(Shifting(self))
    }
}

struct Shifting(Arc<Shift>);

impl Running for Shifting {
    fn value(&mut self, partition: &Partition, position: usize, environment: &Environment) -> Result<Value> {
        let other = usize::try_from(position as i64 + self.0.by).ok().filter(|other| *other < partition.count());
        let other = other.map(|other| partition.at(other, environment)).transpose()?;
        let Some(other) = &other else { return Ok(self.0.default.clone().unwrap_or(Value::Null)) };
        let value = self.0.output.evaluate(&environment.context(other.document()))?;
        Ok(value.into_value().unwrap_or(Value::Null))
    }
}
