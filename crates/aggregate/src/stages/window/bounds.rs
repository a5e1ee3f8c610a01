//! The bounds of a window within a partition.

use super::partition::Partition;
use crate::Environment;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Value, ValueRef, number, order};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{Expression, ParseScope, Variables};
use std::ops::Range;

/// One end of a window.
#[derive(Clone, Debug)]
pub(super) enum Bound<T> {
    Unbounded,
    /// At this distance from the current document.
    At(T),
}

impl<T> Bound<T> {
    fn map<U>(self, read: impl FnOnce(T) -> U) -> Bound<U> {
        match self {
            Self::Unbounded => Bound::Unbounded,
            Self::At(distance) => Bound::At(read(distance)),
        }
    }
}

/// The form of a window.
pub(super) enum Bounds {
    /// Bounds by position.
    Documents(Bound<i64>, Bound<i64>),
    /// Bounds by distance of the sort values.
    Range(Bound<Value>, Bound<Value>, Box<Distance>),
}

/// Computes the value at a distance from a sort value.
pub(super) struct Distance {
    /// The expression, with `$$value` and `$$distance`.
    sum: Expression,
    needs_dates: bool,
}

fn refusal(message: impl Into<String>) -> Failure {
    Failure::failed_to_parse(message.into())
}

impl Bounds {
    /// Bounds of the whole partition.
    pub(super) fn all() -> Self {
        Self::Documents(Bound::Unbounded, Bound::Unbounded)
    }

    /// Whether all documents have one window.
    pub(super) fn is_all(&self) -> bool {
        matches!(
            self,
            Self::Documents(Bound::Unbounded, Bound::Unbounded) | Self::Range(Bound::Unbounded, Bound::Unbounded, _)
        )
    }

    /// Whether windows lose documents at their start when they move on.
    pub(super) fn loses(&self) -> bool {
        matches!(self, Self::Documents(Bound::At(_), _) | Self::Range(Bound::At(_), ..))
    }

    /// Parses `window`.
    /// # Errors
    /// `FailedToParse` if it is not a window, 5339900 if it ends before it begins.
    pub(super) fn parse(value: ValueRef<'_>, scope: &ParseScope) -> Result<Self> {
        let ValueRef::Document(window) = value else { return Err(refusal("'window' field must be an object")) };
        let (documents, range, unit) = (window.get("documents"), window.get("range"), window.get("unit"));
        if window.iter().any(|field| !matches!(field.name, "documents" | "range" | "unit")) {
            return Err(refusal("'window' field can only contain 'documents', 'range' and 'unit'"));
        }
        match (documents, range) {
            (Some(_), Some(_)) => Err(refusal("Window bounds can specify either 'documents' or 'range', not both")),
            (Some(_), None) if unit.is_some() => {
                Err(refusal("Window bounds can only specify 'unit' with range-based bounds"))
            }
            (Some(bounds), None) => {
                let [lower, upper] = pair(bounds, "documents")?;
                let (lower, upper) = (position(lower, scope)?, position(upper, scope)?);
                if let (Bound::At(lower), Bound::At(upper)) = (&lower, &upper)
                    && lower > upper
                {
                    return Err(crossed());
                }
                Ok(Self::Documents(lower, upper))
            }
            (None, Some(bounds)) => {
                let [lower, upper] = pair(bounds, "range")?;
                let has_unit = unit.is_some();
                let (lower, upper) = (distance(lower, has_unit, scope)?, distance(upper, has_unit, scope)?);
                if let (Bound::At(lower), Bound::At(upper)) = (&lower, &upper)
                    && order::compare(lower.as_ref(), upper.as_ref()).is_gt()
                {
                    return Err(crossed());
                }
                Ok(Self::Range(lower, upper, Box::new(Distance::parse(unit)?)))
            }
            (None, None) if unit.is_some() => {
                Err(refusal("Window bounds can only specify 'unit' with range-based bounds"))
            }
            (None, None) => Ok(Self::all()),
        }
    }

    /// Whether each document is in its own window.
    pub(super) fn include_current(&self) -> bool {
        let zero = ValueRef::Int32(0);
        let (lower, upper) = match self {
            Self::Documents(lower, upper) => (lower.clone().map(Value::Int64), upper.clone().map(Value::Int64)),
            Self::Range(lower, upper, _) => (lower.clone(), upper.clone()),
        };
        let begins = !matches!(lower, Bound::At(lower) if order::compare(lower.as_ref(), zero).is_gt());
        let ends = !matches!(upper, Bound::At(upper) if order::compare(upper.as_ref(), zero).is_lt());
        begins && ends
    }

    /// The window of the document at `position`. The previous document's window is `last`, and both ends only move
    /// forward.
    pub(super) fn window(
        &self,
        partition: &Partition,
        position: usize,
        last: &Range<usize>,
        environment: &Environment,
    ) -> Result<Range<usize>> {
        let count = partition.count();
        match self {
            Self::Documents(lower, upper) => {
                let at = |bound: &Bound<i64>, unbounded: usize, behind: i64| match bound {
                    Bound::Unbounded => unbounded,
                    Bound::At(offset) => {
                        let place = (position as i64).saturating_add(*offset).saturating_add(behind);
                        usize::try_from(place).unwrap_or(0).min(count)
                    }
                };
                let (start, end) = (at(lower, 0, 0), at(upper, count, 1));
                Ok(start..end.max(start))
            }
            Self::Range(lower, upper, distance) => {
                let at = partition.at(position, environment)?;
                let value = at.sort_value();
                distance.check(value)?;
                let mut start = last.start;
                if let Bound::At(offset) = lower {
                    let least = distance.from(value, offset, environment)?;
                    start = partition.first_from(
                        start,
                        |other| order::compare(other, least.as_ref()).is_ge(),
                        environment,
                    )?;
                }
                let mut end = count;
                if let Bound::At(offset) = upper {
                    let greatest = distance.from(value, offset, environment)?;
                    let from = last.end.max(start);
                    end = partition.first_from(
                        from,
                        |other| order::compare(other, greatest.as_ref()).is_gt(),
                        environment,
                    )?;
                }
                Ok(start..end.max(start))
            }
        }
    }
}

fn crossed() -> Failure {
    Failure::new(ErrorCode(5_339_900), "Lower bound must not exceed upper bound")
}

fn pair<'v>(bounds: ValueRef<'v>, name: &str) -> Result<[ValueRef<'v>; 2]> {
    let array = bounds.as_array();
    match array.map(|array| array.iter().collect::<Vec<_>>()).as_deref() {
        Some([lower, upper]) => Ok([*lower, *upper]),
        _ => Err(refusal(format!("Window bounds '{name}' must be an array of two elements"))),
    }
}

fn position(value: ValueRef<'_>, scope: &ParseScope) -> Result<Bound<i64>> {
    match value {
        ValueRef::String("unbounded") => Ok(Bound::Unbounded),
        ValueRef::String("current") => Ok(Bound::At(0)),
        _ => {
            let number = small_integer(constant(value, scope)?.as_ref());
            let message = "Numeric document-based bounds must be an integer";
            number.map(|number| Bound::At(number.into())).ok_or_else(|| refusal(message))
        }
    }
}

fn distance(value: ValueRef<'_>, has_unit: bool, scope: &ParseScope) -> Result<Bound<Value>> {
    match value {
        ValueRef::String("unbounded") => return Ok(Bound::Unbounded),
        ValueRef::String("current") => return Ok(Bound::At(Value::Int32(0))),
        _ => {}
    }
    let number = constant(value, scope)?;
    if has_unit && small_integer(number.as_ref()).is_none() {
        return Err(refusal("With 'unit', range-based bounds must be an integer"));
    }
    if !number.as_ref().is_number() {
        return Err(refusal("Range-based bounds expression must be a number"));
    }
    Ok(Bound::At(number))
}

/// A whole number of 32 bits, whatever its numeric type.
fn small_integer(value: ValueRef<'_>) -> Option<i32> {
    number::as_i64_exact(value).and_then(|number| number.try_into().ok())
}

/// The value of a constant expression.
/// Errors: `FailedToParse` for a string, and for an expression that is not constant.
fn constant(value: ValueRef<'_>, scope: &ParseScope) -> Result<Value> {
    if matches!(value, ValueRef::String(_)) {
        return Err(refusal("Window bounds must be 'unbounded', 'current', or a number."));
    }
    let constant = Expression::parse(value, scope)?.constant_value(scope)?;
    constant.ok_or_else(|| refusal("Window bounds expression must be a constant."))
}

/// Checks a unit of time.
/// # Errors
/// `FailedToParse` for another name.
pub(in crate::stages) fn check_unit(unit: ValueRef<'_>) -> Result<&str> {
    const UNITS: [&str; 9] = ["year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond"];
    match unit.as_str() {
        Some(unit) if UNITS.contains(&unit) => Ok(unit),
        Some(unit) => Err(refusal(format!("unknown time unit value: {unit}"))),
        None => Err(refusal("'unit' must be a string")),
    }
}

impl Distance {
    fn parse(unit: Option<ValueRef<'_>>) -> Result<Self> {
        let sum = match unit {
            None => {
                let operands: ArrayBuf = ["$$value", "$$distance"].into_iter().collect();
                DocumentBuf::new().with("$add", &operands)
            }
            Some(unit) => {
                let arguments = DocumentBuf::new()
                    .with("startDate", "$$value")
                    .with("unit", check_unit(unit)?)
                    .with("amount", "$$distance");
                DocumentBuf::new().with("$dateAdd", &arguments)
            }
        };
        let sum = Expression::parse(ValueRef::from(&sum), &ParseScope::new(&variables(ValueRef::Null, &Value::Null)?))?;
        Ok(Self { sum, needs_dates: unit.is_some() })
    }

    fn check(&self, value: ValueRef<'_>) -> Result<()> {
        let found = value.kind().alias();
        if self.needs_dates && !matches!(value, ValueRef::DateTime(_)) {
            let message = format!("Invalid range: Expected the sortBy field to be a Date, but it was {found}");
            return Err(Failure::new(ErrorCode(5_429_513), message));
        }
        if !self.needs_dates && !value.is_number() {
            let message = format!("Invalid range: Expected the sortBy field to be a number, but it was {found}");
            return Err(Failure::new(ErrorCode(5_429_414), message));
        }
        Ok(())
    }

    fn from(&self, value: ValueRef<'_>, offset: &Value, environment: &Environment) -> Result<Value> {
        let environment = environment.with_variables(variables(value, offset)?);
        let sum = self.sum.evaluate(&environment.context(DocumentRef::EMPTY))?;
        Ok(sum.into_value().unwrap_or(Value::Null))
    }
}

fn variables(value: ValueRef<'_>, distance: &Value) -> Result<Variables> {
    let mut variables = Variables::new();
    variables.define("value", Some(value.to_value()))?;
    variables.define("distance", Some(distance.clone()))?;
    Ok(variables)
}
