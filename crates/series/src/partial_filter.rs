//! `partialFilterExpression` of an index of measurements.
//!
//! The bucket index has every bucket that may contain a matching measurement, judged by source and time only; plans use
//! no other parts of a filter. The original filter is stored beside it, and `listIndexes` shows it.

use bunko_bson::text::ElementText;
use bunko_bson::{DocumentRef, Element, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_timeseries::{TimeSeries, path_in_source};

/// Refuses conditions that cannot be applied to buckets.
/// # Errors
/// 5916301 as in MongoDB; `CommandNotSupported` for operators whose behaviour there is unknown.
pub(crate) fn check(filter: DocumentRef<'_>, series: &TimeSeries) -> Result<()> {
    for element in filter {
        match element.name {
            "$and" | "$or" => {
                let parts = element.value.as_array().into_iter().flat_map(bunko_bson::ArrayRef::iter);
                parts.filter_map(ValueRef::as_document).try_for_each(|part| check(part, series))?;
            }
            name if path_in_source(name, series).is_some() => {}
            _ => check_conditions(element, series)?,
        }
    }
    Ok(())
}

fn check_conditions(field: Element<'_>, series: &TimeSeries) -> Result<()> {
    let conditions = match field.value {
        ValueRef::Document(conditions) if conditions.first().is_some_and(|first| first.name.starts_with('$')) => {
            conditions
        }
        operand => return check_operand(operand, field, series),
    };
    for condition in conditions {
        match (condition.name, condition.value) {
            ("$eq" | "$gt" | "$gte" | "$lt" | "$lte", operand) => check_operand(operand, field, series)?,
            ("$in", ValueRef::Array(list)) => {
                list.iter().try_for_each(|operand| check_operand(operand, field, series))?;
            }
            (operator, _) => {
                let what = format!("{operator} of measurements in the partial index of a time series");
                return Err(Failure::not_supported_yet(&what));
            }
        }
    }
    Ok(())
}

fn check_operand(operand: ValueRef<'_>, field: Element<'_>, series: &TimeSeries) -> Result<()> {
    let reason = match operand {
        ValueRef::Array(_) => "can't handle comparison of arrays",
        ValueRef::Document(_) => "can't handle comparison of objects",
        ValueRef::Null | ValueRef::Undefined => "can't handle {$eq: null}",
        ValueRef::DateTime(_) => return Ok(()),
        _ if field.name == series.time_field => {
            "This predicate will never be true, because the time field always contains a Date"
        }
        _ => return Ok(()),
    };
    let message = format!(
        "Error translating non-metadata time-series predicate to operate on buckets: {reason}: {{ {} }}",
        ElementText(field)
    );
    Err(Failure::new(ErrorCode(5_916_301), message))
}
