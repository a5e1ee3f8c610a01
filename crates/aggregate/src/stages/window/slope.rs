//! `$derivative` and `$integral`: slope of the line through a window's documents, and area below it.

use super::bounds::{Bounds, check_unit};
use super::partition::{At, Partition};
use super::{Call, Function, Running};
use crate::Environment;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{Expression, ParseScope, Variables};
use std::ops::Range;
use std::sync::Arc;

/// Arithmetic as an expression, so that it has the types and rounding of expressions.
pub(super) struct Arithmetic(Expression);

fn operation(name: &str, operands: [ValueRef<'_>; 2]) -> DocumentBuf {
    DocumentBuf::new().with(name, &operands.into_iter().collect::<ArrayBuf>())
}

impl Arithmetic {
    fn parse(source: &DocumentBuf, names: &[&str]) -> Result<Self> {
        let mut variables = Variables::new();
        names.iter().try_for_each(|name| variables.define(name, None))?;
        Ok(Self(Expression::parse(ValueRef::from(source), &ParseScope::new(&variables))?))
    }

    /// `y0 + (x - x0) * (y1 - y0) / (x1 - x0)`.
    pub(super) fn between() -> Result<Self> {
        let run = operation("$subtract", ["$$x1".into(), "$$x0".into()]);
        let rise = operation("$subtract", ["$$y1".into(), "$$y0".into()]);
        let way = operation("$subtract", ["$$x".into(), "$$x0".into()]);
        let part = operation("$divide", [(&way).into(), (&run).into()]);
        let step = operation("$multiply", [(&part).into(), (&rise).into()]);
        let sum = operation("$add", ["$$y0".into(), (&step).into()]);
        Self::parse(&sum, &["x0", "x", "x1", "y0", "y1"])
    }

    /// `(y1 - y0) / ((x1 - x0) / unit)`.
    fn slope(unit_ms: Option<i64>) -> Result<Self> {
        let run = operation("$subtract", ["$$x1".into(), "$$x0".into()]);
        let rise = operation("$subtract", ["$$y1".into(), "$$y0".into()]);
        let run = unit_ms.map_or(run.clone(), |unit| operation("$divide", [(&run).into(), unit.into()]));
        let slope = operation("$divide", [(&rise).into(), (&run).into()]);
        Self::parse(&slope, &["x0", "x1", "y0", "y1"])
    }

    /// `(x1 - x0) * (y0 + y1) / 2 / unit`.
    fn trapezoid(unit_ms: Option<i64>) -> Result<Self> {
        let run = operation("$subtract", ["$$x1".into(), "$$x0".into()]);
        let sides = operation("$add", ["$$y0".into(), "$$y1".into()]);
        let twice = operation("$multiply", [(&run).into(), (&sides).into()]);
        let mut area = operation("$divide", [(&twice).into(), 2_i32.into()]);
        if let Some(unit) = unit_ms {
            area = operation("$divide", [(&area).into(), unit.into()]);
        }
        Self::parse(&area, &["x0", "x1", "y0", "y1"])
    }
}

/// The value for these numbers, in the order of the variables.
pub(super) fn computed(
    arithmetic: &Arithmetic,
    numbers: &[(&str, ValueRef<'_>)],
    environment: &Environment,
) -> Result<Value> {
    let mut variables = Variables::new();
    for (name, number) in numbers {
        variables.define(name, Some(number.to_value()))?;
    }
    let environment = environment.with_variables(variables);
    let value = arithmetic.0.evaluate(&environment.context(DocumentRef::EMPTY))?;
    Ok(value.into_value().unwrap_or(Value::Null))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Derivative,
    Integral,
}

struct Slope {
    what: What,
    name: String,
    input: Expression,
    has_unit: bool,
    arithmetic: Arithmetic,
    sum: Arithmetic,
    bounds: Bounds,
}

pub(super) fn parse(call: &Call<'_>) -> Result<Arc<dyn Function>> {
    let what = if call.name == "$derivative" { What::Derivative } else { What::Integral };
    let [input, unit] = call.arguments(["input", "unit"])?;
    let input = input.ok_or_else(|| call.refusal("requires an 'input' expression"))?;
    if call.directions().len() != 1 {
        return Err(call.refusal("requires a sortBy of exactly one field"));
    }
    if what == What::Derivative && call.window.is_none() {
        return Err(call.refusal("requires explicit window bounds"));
    }
    let unit_ms = unit.map(|unit| unit_ms(call, unit)).transpose()?;
    let arithmetic = match what {
        What::Derivative => Arithmetic::slope(unit_ms)?,
        What::Integral => Arithmetic::trapezoid(unit_ms)?,
    };
    let sum = operation("$add", ["$$sum".into(), "$$term".into()]);
    Ok(Arc::new(Slope {
        what,
        name: call.name.to_owned(),
        input: call.expression(input)?,
        has_unit: unit.is_some(),
        arithmetic,
        sum: Arithmetic::parse(&sum, &["sum", "term"])?,
        bounds: call.bounds()?,
    }))
}

/// Milliseconds of a unit, which must have a fixed length.
fn unit_ms(call: &Call<'_>, unit: ValueRef<'_>) -> Result<i64> {
    Ok(match check_unit(unit)? {
        "week" => 7 * 86_400_000,
        "day" => 86_400_000,
        "hour" => 3_600_000,
        "minute" => 60_000,
        "second" => 1_000,
        "millisecond" => 1,
        _ => {
            let message = format!("{} unit must be 'week' or smaller", call.name);
            return Err(Failure::new(ErrorCode(5_490_704), message));
        }
    })
}

impl Function for Slope {
    fn begin(self: Arc<Self>) -> Box<dyn Running> {
        Box::new(Sloping { function: self, window: 0..0, area: Value::Double(0.0) })
    }
}

struct Sloping {
    function: Arc<Slope>,
    window: Range<usize>,
    /// Area below the line through the window's documents.
    area: Value,
}

impl Slope {
    fn point<'p>(&self, at: &'p At<'_>, environment: &Environment) -> Result<(ValueRef<'p>, Value)> {
        let place = at.sort_value();
        let is_date = matches!(place, ValueRef::DateTime(_));
        let refusal = |code, what: &str| Err(Failure::new(ErrorCode(code), format!("{} {what}", self.name)));
        if self.has_unit && !is_date {
            return refusal(5_624_900, "with 'unit' expects the sortBy field to be a Date");
        }
        if !self.has_unit && !place.is_number() {
            return refusal(5_624_902, "where the sortBy is a Date requires an 'unit'");
        }
        let value = self.input.evaluate(&environment.context(at.document()))?.into_value();
        Ok((place, value.unwrap_or(Value::Null)))
    }

    /// The slope, or the area, between two documents.
    fn between(&self, partition: &Partition, from: usize, to: usize, environment: &Environment) -> Result<Value> {
        let (from, to) = (partition.at(from, environment)?, partition.at(to, environment)?);
        let (x0, y0) = self.point(&from, environment)?;
        let (x1, y1) = self.point(&to, environment)?;
        let numbers = [("x0", x0), ("x1", x1), ("y0", y0.as_ref()), ("y1", y1.as_ref())];
        computed(&self.arithmetic, &numbers, environment)
    }
}

impl Running for Sloping {
    fn value(&mut self, partition: &Partition, position: usize, environment: &Environment) -> Result<Value> {
        let function = Arc::clone(&self.function);
        let next = function.bounds.window(partition, position, &self.window, environment)?;
        let last = std::mem::replace(&mut self.window, next.clone());
        if function.what == What::Derivative {
            if next.len() < 2 {
                return Ok(Value::Null);
            }
            return function.between(partition, next.start, next.end - 1, environment);
        }
        if next.is_empty() {
            return Ok(Value::Null);
        }
        // When documents leave the window, the sum starts again: subtracting them would leave rounding errors.
        let mut from = last.end.max(1);
        if next.start != last.start || last.is_empty() {
            self.area = Value::Double(0.0);
            from = next.start + 1;
        }
        if last.is_empty() {
            // A single document has no area, but its values are checked.
            function.point(&partition.at(next.start, environment)?, environment)?;
        }
        for to in from..next.end {
            environment.operation().work(1)?;
            let term = function.between(partition, to - 1, to, environment)?;
            self.area = computed(&function.sum, &[("sum", self.area.as_ref()), ("term", term.as_ref())], environment)?;
        }
        Ok(self.area.clone())
    }
}

impl Arithmetic {
    /// `y * alpha + last * (1 - alpha)`.
    pub(super) fn weighted() -> Result<Self> {
        let now = operation("$multiply", ["$$y".into(), "$$alpha".into()]);
        let rest = operation("$subtract", [1_i32.into(), "$$alpha".into()]);
        let before = operation("$multiply", ["$$last".into(), (&rest).into()]);
        let sum = operation("$add", [(&now).into(), (&before).into()]);
        Self::parse(&sum, &["y", "last", "alpha"])
    }
}
