//! `$covariancePop` and `$covarianceSamp` over two numbers of each document.

use super::bounds::Bounds;
use super::partition::Partition;
use super::{Call, Function, Running};
use crate::Environment;
use bunko_bson::{Decimal128, Value, ValueRef};
use bunko_errors::Result;
use bunko_expression::{Expression, Number, Sum};
use std::ops::Range;
use std::sync::Arc;

struct Covariance {
    input: Expression,
    /// Number to subtract from the count: 1 for a sample (Bessel's correction), else 0.
    correction: usize,
    bounds: Bounds,
}

pub(super) fn parse(call: &Call<'_>) -> Result<Arc<dyn Function>> {
    let correction = usize::from(call.name == "$covarianceSamp");
    Ok(Arc::new(Covariance { input: call.expression(call.argument)?, correction, bounds: call.bounds()? }))
}

impl Function for Covariance {
    fn begin(self: Arc<Self>) -> Box<dyn Running> {
        Box::new(Varying { function: self, window: 0..0, moments: Moments::default() })
    }
}

struct Varying {
    function: Arc<Covariance>,
    window: Range<usize>,
    moments: Moments,
}

/// Sums of finite pairs, and of the products of their differences from the means. Numbers that are not finite are
/// counted apart. Source: Welford's method for two variables, with means from the sums.
#[derive(Default)]
struct Moments {
    count: usize,
    x: Sum,
    y: Sum,
    products: Sum,
    apart: Apart,
}

/// Counts of infinities and NaN, which could not be subtracted from a sum again.
#[derive(Default)]
struct Apart {
    positive: usize,
    negative: usize,
    nan: usize,
    decimals: usize,
}

impl Apart {
    /// Changes the counts for a number that enters or leaves.
    fn count(&mut self, number: Number, change: fn(&mut usize)) {
        if number.is_decimal() {
            change(&mut self.decimals);
        }
        change(if number.is_nan() {
            &mut self.nan
        } else if number.to_f64() > 0.0 {
            &mut self.positive
        } else {
            &mut self.negative
        });
    }

    /// The infinity or NaN that a sum with these numbers has; `None` if there are no such numbers.
    fn outweighs(&self) -> Option<f64> {
        match (self.positive, self.negative, self.nan) {
            (0, 0, 0) => None,
            (_, 0, 0) => Some(f64::INFINITY),
            (0, _, 0) => Some(f64::NEG_INFINITY),
            _ => Some(f64::NAN),
        }
    }
}

/// The mean; 0 without numbers.
fn mean(sum: Sum, count: usize) -> Number {
    match Number::of(sum.value().as_ref()) {
        Some(sum) if count > 0 => sum.over(count),
        _ => Number::Int32(0),
    }
}

impl Moments {
    fn add(&mut self, x: Number, y: Number) {
        if self.stands_apart(x, y, |count| *count += 1) {
            return;
        }
        let before_x = x.minus(mean(self.x, self.count));
        self.count += 1;
        self.x.add(x);
        self.y.add(y);
        let product = before_x.times(y.minus(mean(self.y, self.count)));
        if product.is_finite() { self.products.add(product) } else { self.apart.count(product, |count| *count += 1) }
    }

    fn remove(&mut self, x: Number, y: Number) {
        if self.stands_apart(x, y, |count| *count -= 1) {
            return;
        }
        let before_y = y.minus(mean(self.y, self.count));
        self.count -= 1;
        if self.count == 0 {
            (self.x, self.y, self.products) = (Sum::default(), Sum::default(), Sum::default());
            return;
        }
        self.x.take_off(x);
        self.y.take_off(y);
        let product = x.minus(mean(self.x, self.count)).times(before_y);
        if product.is_finite() {
            self.products.take_off(product);
        } else {
            self.apart.count(product, |count| *count = count.saturating_sub(1));
        }
    }

    /// Counts a pair apart if one of its numbers is not finite; returns whether that is so.
    fn stands_apart(&mut self, x: Number, y: Number, change: fn(&mut usize)) -> bool {
        for number in [x, y].into_iter().filter(|number| !number.is_finite()) {
            self.apart.count(number, change);
        }
        !x.is_finite() || !y.is_finite()
    }

    /// The covariance; null for too few pairs, and 0 for a single one.
    fn value(&self, correction: usize) -> Value {
        match self.count.checked_sub(correction) {
            None | Some(0) => return Value::Null,
            Some(_) if self.count == 1 => return Value::Double(0.0),
            Some(_) => {}
        }
        let products = self.products.value();
        let has_decimals = self.apart.decimals > 0 || matches!(products, Value::Decimal128(_));
        match (self.apart.outweighs(), Number::of(products.as_ref())) {
            (Some(special), _) if has_decimals => Value::Decimal128(Decimal128::from_f64(special)),
            (Some(special), _) => Value::Double(special),
            (None, Some(products)) => products.over(self.count - correction).into(),
            (None, None) => Value::Null,
        }
    }
}

/// The two numbers of an array; `None` for any other value.
fn pair(value: Option<ValueRef<'_>>) -> Option<(Number, Number)> {
    let array = value.and_then(ValueRef::as_array)?;
    let mut elements = array.iter();
    let (Some(x), Some(y), None) = (elements.next(), elements.next(), elements.next()) else { return None };
    Some((Number::of(x)?, Number::of(y)?))
}

impl Varying {
    fn pair(
        &self,
        partition: &Partition,
        position: usize,
        environment: &Environment,
    ) -> Result<Option<(Number, Number)>> {
        environment.operation().work(1)?;
        let at = partition.at(position, environment)?;
        let value = self.function.input.evaluate(&environment.context(at.document()))?;
        Ok(pair(value.get()))
    }
}

impl Running for Varying {
    fn value(&mut self, partition: &Partition, position: usize, environment: &Environment) -> Result<Value> {
        let function = Arc::clone(&self.function);
        let next = function.bounds.window(partition, position, &self.window, environment)?;
        let last = std::mem::replace(&mut self.window, next.clone());
        for entering in last.end.max(next.start)..next.end {
            if let Some((x, y)) = self.pair(partition, entering, environment)? {
                self.moments.add(x, y);
            }
        }
        for leaving in last.start..next.start.min(last.end) {
            if let Some((x, y)) = self.pair(partition, leaving, environment)? {
                self.moments.remove(x, y);
            }
        }
        Ok(self.moments.value(function.correction))
    }
}
