//! Converts filters on measurements to filters on their buckets.

use crate::TimeSeries;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef};

/// A filter that matches every bucket with a measurement matched by `filter`, and few others. It uses the source, the
/// bounds of the time, and geospatial regions. `None` if it would match all buckets.
pub fn bucket_filter(filter: DocumentRef<'_>, series: &TimeSeries) -> Option<DocumentBuf> {
    let mut conditions = Vec::new();
    gather(filter, series, &mut conditions);
    match conditions.len() {
        0 => None,
        1 => conditions.pop(),
        _ => {
            let mut all = ArrayBuf::new();
            for condition in &conditions {
                all.push(condition);
            }
            Some(DocumentBuf::new().with("$and", &all))
        }
    }
}

fn gather(filter: DocumentRef<'_>, series: &TimeSeries, conditions: &mut Vec<DocumentBuf>) {
    for element in filter {
        if element.name == "$and" {
            let parts = element.value.as_array().into_iter().flat_map(bunko_bson::ArrayRef::iter);
            for part in parts.filter_map(ValueRef::as_document) {
                gather(part, series, conditions);
            }
        } else if let Some(path) = source_path(element.name, series) {
            conditions.push(DocumentBuf::new().with(&path, element.value));
        } else if let Some(region) = region_of(element.value).filter(|_| !element.name.starts_with('$')) {
            let operand = DocumentBuf::new().with("withinRegion", region).with("field", element.name);
            conditions.push(DocumentBuf::new().with("$_internalBucketGeoWithin", &operand));
        } else if element.name == series.time_field {
            gather_times(element.value, series, conditions);
        }
    }
}

/// The operand of `$geoWithin`, if that is the first operator of a condition.
fn region_of(condition: ValueRef<'_>) -> Option<DocumentRef<'_>> {
    let first = condition.as_document()?.first()?;
    if first.name == "$geoWithin" { first.value.as_document() } else { None }
}

/// The path in a bucket for a path into the source, which all measurements of a bucket share.
pub fn source_path(path: &str, series: &TimeSeries) -> Option<String> {
    let rest = path.strip_prefix(series.source_field()?)?;
    (rest.is_empty() || rest.starts_with('.')).then(|| format!("meta{rest}"))
}

/// Converts bounds of times to conditions on the bounds of buckets.
fn gather_times(condition: ValueRef<'_>, series: &TimeSeries, conditions: &mut Vec<DocumentBuf>) {
    let mut bound = |side: &str, operator: &str, time_ms: i64| {
        let compared = DocumentBuf::new().with(operator, ValueRef::DateTime(time_ms));
        conditions.push(DocumentBuf::new().with(&format!("control.{side}.{}", series.time_field), &compared));
    };
    match condition {
        ValueRef::DateTime(time_ms) => {
            bound("min", "$lte", time_ms);
            bound("max", "$gte", time_ms);
        }
        ValueRef::Document(operators) => {
            for operator in operators {
                let ValueRef::DateTime(time_ms) = operator.value else { continue };
                match operator.name {
                    "$gt" | "$gte" => bound("max", operator.name, time_ms),
                    // The least time of a bucket is rounded down, so this matches enough buckets.
                    "$lt" | "$lte" => bound("min", operator.name, time_ms),
                    "$eq" => {
                        bound("min", "$lte", time_ms);
                        bound("max", "$gte", time_ms);
                    }
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series() -> TimeSeries {
        let option = DocumentBuf::new().with("timeField", "t").with("metaField", "m");
        TimeSeries::parse(option.as_ref(), "create.timeseries").expect("valid")
    }

    #[test]
    fn source_and_times_are_asked_of_buckets() {
        let since = DocumentBuf::new().with("$gte", ValueRef::DateTime(5)).with("$ne", ValueRef::DateTime(7));
        let filter = DocumentBuf::new().with("m.a", 1).with("t", &since).with("v", 3);
        let source = DocumentBuf::new().with("meta.a", 1);
        let compared = DocumentBuf::new().with("$gte", ValueRef::DateTime(5));
        let times = DocumentBuf::new().with("control.max.t", &compared);
        let mut both = ArrayBuf::new();
        both.push(&source).push(&times);
        assert_eq!(bucket_filter(filter.as_ref(), &series()), Some(DocumentBuf::new().with("$and", &both)));
    }

    #[test]
    fn conditions_that_say_nothing_of_buckets_are_left_out() {
        let either = ArrayBuf::new();
        for filter in [
            DocumentBuf::new().with("v", 3),
            DocumentBuf::new().with("meta", 3),
            DocumentBuf::new().with("mother", 3),
            DocumentBuf::new().with("$or", &either),
            DocumentBuf::new().with("t", 5),
        ] {
            assert_eq!(bucket_filter(filter.as_ref(), &series()), None, "{filter:?}");
        }
    }
}
