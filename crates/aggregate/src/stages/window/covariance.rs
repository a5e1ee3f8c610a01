//! `$covariancePop` and `$covarianceSamp` of two numbers of each document.

use super::bounds::Bounds;
use super::partition::Partition;
use super::{Call, Function, Running};
use crate::Environment;
use bunko_bson::{Decimal128, Value, ValueRef, number};
use bunko_errors::Result;
use bunko_expression::Expression;
use std::ops::Range;
use std::sync::Arc;

struct Covariance {
    input: Expression,
    /// What is taken off the count: 1 for a sample (Bessel's correction), else 0.
    correction: usize,
    bounds: Bounds,
}

pub(super) fn parse(call: &Call<'_>) -> Result<Arc<dyn Function>> {
    let correction = usize::from(call.name == "$covarianceSamp");
    Ok(Arc::new(Covariance { input: call.expression(call.argument)?, correction, bounds: call.bounds()? }))
}

impl Function for Covariance {
    fn begin(self: Arc<Self>) -> Box<dyn Running> {
        Box::new(Varying { function: self, window: 0..0, moments: Moments::default(), others: 0, decimals: 0 })
    }
}

struct Varying {
    function: Arc<Covariance>,
    window: Range<usize>,
    moments: Moments,
    /// Pairs of the window with a number that is not finite.
    others: usize,
    /// Pairs of the window with a decimal.
    decimals: usize,
}

/// Means and the sum of products of differences. Source: Welford's method for two variables.
#[derive(Clone, Copy, Default)]
struct Moments {
    count: usize,
    mean_x: f64,
    mean_y: f64,
    products: f64,
}

impl Moments {
    fn add(&mut self, x: f64, y: f64) {
        self.count += 1;
        let count = self.count as f64;
        let before_x = x - self.mean_x;
        self.mean_x += before_x / count;
        self.mean_y += (y - self.mean_y) / count;
        self.products += before_x * (y - self.mean_y);
    }

    fn remove(&mut self, x: f64, y: f64) {
        if self.count <= 1 {
            *self = Self::default();
            return;
        }
        let count = self.count as f64;
        let behind_y = y - self.mean_y;
        self.mean_x = (self.mean_x * count - x) / (count - 1.0);
        self.mean_y = (self.mean_y * count - y) / (count - 1.0);
        self.products -= (x - self.mean_x) * behind_y;
        self.count -= 1;
    }
}

/// Two numbers, and whether one of them is a decimal; nothing for anything else.
fn pair(value: Option<ValueRef<'_>>) -> Option<(f64, f64, bool)> {
    let array = value.and_then(ValueRef::as_array)?;
    let mut elements = array.iter();
    let (Some(x), Some(y), None) = (elements.next(), elements.next(), elements.next()) else { return None };
    let has_decimal = [x, y].iter().any(|number| matches!(number, ValueRef::Decimal128(_)));
    Some((number::as_f64(x)?, number::as_f64(y)?, has_decimal))
}

impl Varying {
    fn pair(
        &self,
        partition: &Partition,
        position: usize,
        environment: &Environment,
    ) -> Result<Option<(f64, f64, bool)>> {
        environment.operation().work(1)?;
        let value = self.function.input.evaluate(&environment.context(partition.document(position)))?;
        Ok(pair(value.get()))
    }
}

impl Running for Varying {
    fn value(&mut self, partition: &Partition, position: usize, environment: &Environment) -> Result<Value> {
        let function = Arc::clone(&self.function);
        let next = function.bounds.window(partition, position, &self.window, environment)?;
        let last = std::mem::replace(&mut self.window, next.clone());
        for entering in last.end.max(next.start)..next.end {
            let Some((x, y, has_decimal)) = self.pair(partition, entering, environment)? else { continue };
            self.decimals += usize::from(has_decimal);
            if x.is_finite() && y.is_finite() { self.moments.add(x, y) } else { self.others += 1 }
        }
        for leaving in last.start..next.start.min(last.end) {
            let Some((x, y, has_decimal)) = self.pair(partition, leaving, environment)? else { continue };
            self.decimals -= usize::from(has_decimal);
            if x.is_finite() && y.is_finite() { self.moments.remove(x, y) } else { self.others -= 1 }
        }
        if self.others > 0 || self.moments.count <= function.correction {
            return Ok(Value::Null);
        }
        let covariance = self.moments.products / (self.moments.count - function.correction) as f64;
        Ok(if self.decimals > 0 {
            Value::Decimal128(Decimal128::from_f64(covariance))
        } else {
            Value::Double(covariance)
        })
    }
}
