//! `range` of `$densify`: the values that must exist.

use crate::stage_fields::StageFields;
use crate::stages::window::check_unit;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, Value, ValueRef, number, order};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{EvaluationContext, Expression, ParseScope, Variables};
use bunko_operation::OperationContext;
use std::cmp::Ordering;

/// The range of values to fill.
pub(super) enum Bounds {
    /// From the lowest to the highest value of all documents.
    Full,
    /// From the lowest to the highest value of each partition.
    Partition,
    /// From the first value, included, to the second, excluded.
    Between(Value, Value),
}

/// The kind of a bound's value.
#[derive(Clone, Copy)]
enum Sort {
    Number,
    Date,
    Other,
}

impl Sort {
    fn of(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::DateTime(_) => Self::Date,
            number if number.is_number() => Self::Number,
            _ => Self::Other,
        }
    }
}

/// The values between bounds: the step and the bounds.
pub(super) struct Range {
    pub(super) bounds: Bounds,
    next: Expression,
    /// Whether values are dates.
    is_dated: bool,
}

fn failure(code: i32, message: &str) -> Failure {
    Failure::new(ErrorCode(code), message)
}

impl Range {
    /// Parses `range`.
    /// # Errors
    /// 5733401 for the step, 6586400 for a step that is not a whole number of units, `FailedToParse` for the unit,
    /// errors of [`Bounds`]. Null counts as a value of `bounds`, since they may have any type.
    pub(super) fn parse(range: DocumentRef<'_>) -> Result<Self> {
        let fields = StageFields::new("$densify.range", range, &["step", "unit", "bounds"])?;
        let step = fields.required("step", fields.field("step"))?;
        let bounds = fields.required("bounds", range.get("bounds"))?;
        if !step.is_number() {
            return Err(fields.mismatch("step", step, "number"));
        }
        if !number::as_f64(step).is_some_and(|step| step > 0.0) {
            let message = "The step parameter in a range statement must be a strictly positive numeric value";
            return Err(failure(5_733_401, message));
        }
        let unit = fields.string("unit")?;
        if unit.is_some() && number::as_i64_exact(step).is_none() {
            let message = "The step parameter in a range statement must be a whole number when densifying a date range";
            return Err(failure(6_586_400, message));
        }
        let unit = unit.map(|unit| check_unit(ValueRef::String(unit))).transpose()?;
        let bounds = Bounds::parse(bounds, step, unit)?;
        Ok(Self { bounds, next: following(step, unit)?, is_dated: unit.is_some() })
    }

    /// The value one step after `value`.
    /// # Errors
    /// Errors of adding to numbers and dates.
    pub(super) fn next(&self, value: &Value, operation: &OperationContext) -> Result<Value> {
        let document = DocumentBuf::new().with("value", value);
        let variables = Variables::default();
        let context = EvaluationContext::new(document.as_ref(), &variables, 0, operation);
        Ok(self.next.evaluate(&context)?.into_value().unwrap_or(Value::Null))
    }

    /// Checks a document's value.
    /// # Errors
    /// 5733201 if it is neither number nor date, 6053600 if it does not have the range's kind.
    pub(super) fn check(&self, value: ValueRef<'_>) -> Result<()> {
        match (Sort::of(value), self.is_dated) {
            (Sort::Date, true) | (Sort::Number, false) => Ok(()),
            (Sort::Other, _) => Err(failure(5_733_201, "Densify field type must be numeric or a date")),
            (Sort::Date, false) => {
                let message = "Encountered date densify value in collection when step does not have a date unit.";
                Err(failure(6_053_600, message))
            }
            (Sort::Number, true) => {
                let message = "Encountered numeric densify value in collection when step has a date unit.";
                Err(failure(6_053_600, message))
            }
        }
    }
}

/// The expression for the value one step after `$value`.
fn following(step: ValueRef<'_>, unit: Option<&str>) -> Result<Expression> {
    let step = DocumentBuf::new().with("$literal", step);
    let sum = match unit {
        None => {
            let operands: ArrayBuf = [ValueRef::String("$value"), ValueRef::from(&step)].into_iter().collect();
            DocumentBuf::new().with("$add", &operands)
        }
        Some(unit) => {
            let arguments = DocumentBuf::new().with("startDate", "$value").with("unit", unit).with("amount", &step);
            DocumentBuf::new().with("$dateAdd", &arguments)
        }
    };
    Expression::parse(ValueRef::from(&sum), &ParseScope::default())
}

impl Bounds {
    /// Errors: 5733404 if it is not bounds, 5946802 for an unknown name; for an array 5733403 for another length,
    /// 5733402 for descending order, 5733409 and 5733410 if it does not fit the unit, 5733405 and 5733406 for a date
    /// with a number, 5876900 for numbers of several types, 5946800 for other values.
    fn parse(bounds: ValueRef<'_>, step: ValueRef<'_>, unit: Option<&str>) -> Result<Self> {
        match bounds {
            ValueRef::String("full") => Ok(Self::Full),
            ValueRef::String("partition") => Ok(Self::Partition),
            ValueRef::String(_) => Err(failure(5_946_802, "Bounds string must either be 'full' or 'partition'")),
            ValueRef::Array(array) => Self::between(array, step, unit),
            _ => Err(failure(
                5_733_404,
                "The bounds in a range statement must be the string 'full', 'partition', or an ascending array of two \
                 numbers or two dates",
            )),
        }
    }

    fn between(array: ArrayRef<'_>, step: ValueRef<'_>, unit: Option<&str>) -> Result<Self> {
        let (Some(low), Some(high), 2) = (array.get(0), array.get(1), array.count()) else {
            let message = "A bounding array in a range statement must have exactly two elements";
            return Err(failure(5_733_403, message));
        };
        if order::compare(low, high) == Ordering::Greater {
            let message = "A bounding array must be an ascending array of either two dates or two numbers";
            return Err(failure(5_733_402, message));
        }
        let mixed = "A bounding array must contain either both dates or both numeric types";
        match (Sort::of(low), Sort::of(high), unit) {
            (Sort::Date, Sort::Date, Some(_)) => {}
            (Sort::Number, Sort::Number, None) if [high.kind(), step.kind()].iter().all(|kind| *kind == low.kind()) => {
            }
            (Sort::Number, Sort::Number, None) => {
                let message = "Upper bound, lower bound, and step must all have the same type";
                return Err(failure(5_876_900, message));
            }
            (Sort::Number, _, None) => return Err(failure(5_733_406, mixed)),
            (Sort::Number, _, Some(_)) => {
                return Err(failure(5_733_409, "Numeric bounds may not have unit parameter"));
            }
            (Sort::Date, Sort::Date, None) => {
                return Err(failure(5_733_410, "A bounding array of dates must specify a unit"));
            }
            (Sort::Date, ..) => return Err(failure(5_733_405, mixed)),
            (Sort::Other, ..) => return Err(failure(5_946_800, "Explicit bounds must be numeric or dates")),
        }
        Ok(Self::Between(low.to_value(), high.to_value()))
    }
}
