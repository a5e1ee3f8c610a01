//! `$minMaxScaler`: a number's position between the lowest and the highest of its window.

use super::bounds::Bounds;
use super::partition::Partition;
use super::slope::{Arithmetic, computed};
use super::{Call, Function, Running, check_held};
use crate::Environment;
use bunko_bson::{Value, ValueRef, order};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::Expression;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

struct Scaler {
    input: Expression,
    least: Value,
    greatest: Value,
    arithmetic: Arithmetic,
    bounds: Bounds,
}

pub(super) fn parse(call: &Call<'_>) -> Result<Arc<dyn Function>> {
    let (input, least, greatest) = arguments(call)?;
    if least.is_some() != greatest.is_some() {
        return Err(call.refusal("requires both 'min' and 'max', or neither"));
    }
    let number = |given: Option<ValueRef<'_>>, default| match given {
        None => Ok(Value::Int32(default)),
        Some(value) if value.is_number() => Ok(value.to_value()),
        Some(_) => Err(call.refusal("requires 'min' and 'max' to be numbers")),
    };
    let (least, greatest) = (number(least, 0)?, number(greatest, 1)?);
    if order::compare(least.as_ref(), greatest.as_ref()).is_ge() {
        return Err(call.refusal("requires 'max' to be strictly greater than 'min'"));
    }
    let arithmetic = Arithmetic::between()?;
    let bounds = call.bounds()?;
    if !bounds.include_current() {
        return Err(call.refusal("must have the current document in its window"));
    }
    Ok(Arc::new(Scaler { input: call.expression(input)?, least, greatest, arithmetic, bounds }))
}

/// The arguments `input`, `min` and `max`; a plain expression is the input.
/// # Errors
/// `IDLUnknownField`; `IDLFailedToParse` without `input`.
fn arguments<'a>(call: &'a Call<'_>) -> Result<(ValueRef<'a>, Option<ValueRef<'a>>, Option<ValueRef<'a>>)> {
    let document = match call.argument {
        ValueRef::Document(document) if !document.first().is_some_and(|first| first.name.starts_with('$')) => document,
        expression => return Ok((expression, None, None)),
    };
    let known = ["input", "min", "max"];
    if let Some(unknown) = document.iter().find(|field| !known.contains(&field.name)) {
        return Err(Failure::unknown_field(format_args!("$minMaxScaler.{}", unknown.name)));
    }
    let input = document.get("input").ok_or_else(|| Failure::missing_field("$minMaxScaler.input"))?;
    Ok((input, document.get("min"), document.get("max")))
}

impl Function for Scaler {
    fn begin(self: Arc<Self>) -> Box<dyn Running> {
        Box::new(Scaling { function: self, window: 0..0, falling: VecDeque::new(), rising: VecDeque::new() })
    }
}

struct Scaling {
    function: Arc<Scaler>,
    window: Range<usize>,
    /// Candidates for the highest number, with their positions; the current highest comes first.
    falling: VecDeque<(usize, Value)>,
    /// Candidates for the lowest number; the current lowest comes first.
    rising: VecDeque<(usize, Value)>,
}

impl Scaler {
    fn number(&self, partition: &Partition, position: usize, environment: &Environment) -> Result<Value> {
        let at = partition.at(position, environment)?;
        let value = self.input.evaluate(&environment.context(at.document()))?;
        match value.get() {
            Some(number) if number.is_number() => Ok(number.to_value()),
            _ => {
                let found = value.type_name();
                let message = format!("$minMaxScaler can only be applied to numbers, found: {found}");
                Err(Failure::new(ErrorCode(10_487_001), message))
            }
        }
    }
}

impl Running for Scaling {
    fn value(&mut self, partition: &Partition, position: usize, environment: &Environment) -> Result<Value> {
        let function = Arc::clone(&self.function);
        let next = function.bounds.window(partition, position, &self.window, environment)?;
        for entering in self.window.end.max(next.start)..next.end {
            environment.operation().work(1)?;
            let number = function.number(partition, entering, environment)?;
            let passes = |kept: &(usize, Value)| order::compare(kept.1.as_ref(), number.as_ref());
            while self.falling.back().is_some_and(|kept| passes(kept).is_le()) {
                self.falling.pop_back();
            }
            while self.rising.back().is_some_and(|kept| passes(kept).is_ge()) {
                self.rising.pop_back();
            }
            self.falling.push_back((entering, number.clone()));
            self.rising.push_back((entering, number));
            check_held((self.falling.len() + self.rising.len()) * size_of::<(usize, Value)>(), environment)?;
        }
        for kept in [&mut self.falling, &mut self.rising] {
            while kept.front().is_some_and(|(place, _)| *place < next.start) {
                kept.pop_front();
            }
        }
        self.window = next;
        let (Some((_, least)), Some((_, greatest))) = (self.rising.front(), self.falling.front()) else {
            return Ok(Value::Null);
        };
        if order::equal(least.as_ref(), greatest.as_ref()) {
            return Ok(function.least.clone());
        }
        let number = function.number(partition, position, environment)?;
        let numbers = [
            ("x0", least.as_ref()),
            ("x", number.as_ref()),
            ("x1", greatest.as_ref()),
            ("y0", function.least.as_ref()),
            ("y1", function.greatest.as_ref()),
        ];
        computed(&function.arithmetic, &numbers, environment)
    }
}
