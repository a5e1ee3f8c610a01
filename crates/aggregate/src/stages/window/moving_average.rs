//! `$expMovingAvg`: an average that gives later documents more weight.

use super::partition::Partition;
use super::slope::{Arithmetic, computed};
use super::{Call, Function, Running};
use crate::Environment;
use bunko_bson::{Value, ValueRef, number};
use bunko_errors::Result;
use bunko_expression::Expression;
use std::sync::Arc;

struct MovingAverage {
    input: Expression,
    /// Weight of a document against all earlier ones.
    alpha: Value,
    arithmetic: Arithmetic,
}

pub(super) fn parse(call: &Call<'_>) -> Result<Arc<dyn Function>> {
    call.without_window()?;
    let refusal = || call.refusal("must have exactly two arguments: 'input', and either 'N' or 'alpha'");
    if call.argument.as_document().is_some_and(|arguments| arguments.count() != 2) {
        return Err(refusal());
    }
    let [input, count, alpha] = call.arguments(["input", "N", "alpha"])?;
    if call.directions().is_empty() {
        return Err(call.refusal("requires an explicit 'sortBy'"));
    }
    let alpha = match (count, alpha) {
        (Some(count), None) => {
            let count = number::as_i64_exact(count).filter(|_| count.is_number());
            let count = count.ok_or_else(|| call.refusal("'N' field must be an integer"))?;
            if count <= 0 {
                return Err(call.refusal("'N' field must be greater than zero."));
            }
            Value::Double(2.0 / (count as f64 + 1.0))
        }
        (None, Some(alpha)) => {
            let weight = number::as_f64(alpha).ok_or_else(|| call.refusal("'alpha' must be a number"))?;
            if !(weight > 0.0 && weight < 1.0) {
                return Err(call.refusal("'alpha' must be between 0 and 1 (exclusive)"));
            }
            alpha.to_value()
        }
        _ => return Err(refusal()),
    };
    let input = call.expression(input.ok_or_else(refusal)?)?;
    Ok(Arc::new(MovingAverage { input, alpha, arithmetic: Arithmetic::weighted()? }))
}

impl Function for MovingAverage {
    fn begin(self: Arc<Self>) -> Box<dyn Running> {
        Box::new(Averaging { function: self, average: None })
    }
}

struct Averaging {
    function: Arc<MovingAverage>,
    average: Option<Value>,
}

impl Running for Averaging {
    fn value(&mut self, partition: &Partition, position: usize, environment: &Environment) -> Result<Value> {
        let function = Arc::clone(&self.function);
        let at = partition.at(position, environment)?;
        let value = function.input.evaluate(&environment.context(at.document()))?;
        // A value that is not a number leaves the average unchanged.
        let Some(number) = value.get().filter(|value| value.is_number()) else {
            return Ok(self.average.clone().unwrap_or(Value::Null));
        };
        let next = match &self.average {
            Some(average) => {
                let numbers = [("y", number), ("last", average.as_ref()), ("alpha", function.alpha.as_ref())];
                computed(&function.arithmetic, &numbers, environment)?
            }
            None => match number {
                ValueRef::Decimal128(_) => number.to_value(),
                _ => number::as_f64(number).map_or(Value::Null, Value::Double),
            },
        };
        self.average = Some(next.clone());
        Ok(next)
    }
}
