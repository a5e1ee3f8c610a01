//! Accumulators over windows.

use super::bounds::Bounds;
use super::deviation::Deviation;
use super::partition::Partition;
use super::{Call, Function, Running, check_held};
use crate::Environment;
use bunko_bson::{DocumentBuf, DocumentRef, Element, Value, ValueRef};
use bunko_errors::{Failure, Result};
use bunko_expression::{Accumulator, AccumulatorExpression, Removal};
use std::ops::Range;
use std::sync::Arc;

/// Accumulators that only `$group` supports.
const NOT_IN_WINDOWS: &[&str] = &["$mergeObjects", "$accumulator", "$_internalJsReduce"];

struct Accumulated {
    expression: AccumulatorExpression,
    bounds: Bounds,
}

pub(super) fn parse(call: &Call<'_>) -> Result<Arc<dyn Function>> {
    if NOT_IN_WINDOWS.contains(&call.name) || !AccumulatorExpression::exists(call.name) {
        return Err(Failure::failed_to_parse(format!("Unrecognized window function, {}", call.name)));
    }
    // In `$group`, this error of `$count` has another message.
    if call.name == "$count" && !call.argument.as_document().is_some_and(DocumentRef::is_empty) {
        return Err(Failure::failed_to_parse("$count only accepts an empty object as input"));
    }
    let bounds = call.bounds()?;
    let source = DocumentBuf::new().with(call.name, call.argument);
    let field = Element { name: "field", value: ValueRef::from(&source) };
    let expression = AccumulatorExpression::parse_in_window(field, call.scope)?;
    Ok(Arc::new(Accumulated { expression, bounds }))
}

impl Function for Accumulated {
    fn begin(self: Arc<Self>) -> Box<dyn Running> {
        Box::new(Sliding { function: self, accumulator: None, window: 0..0, all: None })
    }
}

/// An accumulator over the documents of a moving window.
struct Sliding {
    function: Arc<Accumulated>,
    accumulator: Option<Box<dyn Accumulator>>,
    window: Range<usize>,
    /// The value, if all documents have one window.
    all: Option<Value>,
}

impl Sliding {
    fn feed(&mut self, partition: &Partition, positions: Range<usize>, environment: &Environment) -> Result<()> {
        let expression = &self.function.expression;
        let accumulator = match &mut self.accumulator {
            Some(accumulator) => accumulator,
            none => none.insert(match expression.name() {
                name @ ("$stdDevPop" | "$stdDevSamp") if self.function.bounds.loses() => Box::new(Deviation::of(name)),
                _ => expression.make(&environment.context(DocumentRef::EMPTY))?,
            }),
        };
        for position in positions {
            let at = partition.at(position, environment)?;
            expression.feed(&mut **accumulator, &environment.context(at.document()))?;
            check_held(accumulator.memory_bytes(), environment)?;
        }
        Ok(())
    }

    /// Removes the documents at these positions; returns whether the accumulator supports that.
    fn remove(&mut self, partition: &Partition, positions: Range<usize>, environment: &Environment) -> Result<Removal> {
        let Some(accumulator) = &mut self.accumulator else { return Ok(Removal::Impossible) };
        for position in positions {
            let at = partition.at(position, environment)?;
            let context = environment.context(at.document());
            if self.function.expression.take_back(&mut **accumulator, &context)? == Removal::Impossible {
                return Ok(Removal::Impossible);
            }
        }
        Ok(Removal::Done)
    }
}

impl Running for Sliding {
    fn value(&mut self, partition: &Partition, position: usize, environment: &Environment) -> Result<Value> {
        if let Some(value) = &self.all {
            return Ok(value.clone());
        }
        let function = Arc::clone(&self.function);
        let next = function.bounds.window(partition, position, &self.window, environment)?;
        let last = std::mem::replace(&mut self.window, next.clone());
        let overlaps = next.start < last.end && next.start >= last.start && next.end >= last.end;
        let slides = overlaps
            && (next.start == last.start
                || self.remove(partition, last.start..next.start, environment)? == Removal::Done);
        if slides {
            self.feed(partition, last.end..next.end, environment)?;
        } else {
            self.accumulator = None;
            self.feed(partition, next, environment)?;
        }
        let value = self.accumulator.as_ref().map_or(Value::Null, |accumulator| accumulator.value());
        if function.bounds.is_all() {
            self.all = Some(value.clone());
        }
        Ok(value)
    }
}
