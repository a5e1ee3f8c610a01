//! One inserted measurement.

use crate::TimeSeries;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Value, ValueRef};
use bunko_errors::{Failure, Result};

/// A document from a client, with the values that determine its bucket.
#[derive(Clone, Copy, Debug)]
pub struct Measurement<'d> {
    /// Milliseconds since 1970.
    pub time_ms: i64,
    /// The source, as the client wrote it.
    pub meta: Option<ValueRef<'d>>,
    /// The whole document.
    pub document: DocumentRef<'d>,
}

impl<'d> Measurement<'d> {
    /// # Errors
    /// `BadValue` if the time is missing or is not a date.
    pub fn of(document: DocumentRef<'d>, series: &TimeSeries) -> Result<Self> {
        let Some(ValueRef::DateTime(time_ms)) = document.get(&series.time_field) else {
            return Err(Failure::bad_value(format!(
                "'{}' must be present and contain a valid BSON UTC datetime value",
                series.time_field
            )));
        };
        let meta = series.source_field().and_then(|field| document.get(field));
        Ok(Self { time_ms, meta, document })
    }

    /// The source in a normal form, so that it does not depend on the order of fields: they are sorted by name.
    pub fn normalized_meta(&self) -> Option<Value> {
        self.meta.map(normalized)
    }

    /// Bytes that identify the source; `1` and `1.0` are different sources.
    pub fn source(&self) -> Vec<u8> {
        source_bytes(self.normalized_meta().as_ref())
    }
}

/// The bytes of a source in normal form; empty for measurements without a source.
pub(crate) fn source_bytes(meta: Option<&Value>) -> Vec<u8> {
    meta.map_or_else(Vec::new, |meta| DocumentBuf::new().with("", meta.as_ref()).into_bytes())
}

fn normalized(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Document(document) => {
            let mut fields: Vec<_> = document.iter().collect();
            fields.sort_by_key(|field| field.name);
            let mut sorted = DocumentBuf::new();
            for field in fields {
                sorted.append(field.name, normalized(field.value).as_ref());
            }
            Value::Document(sorted)
        }
        ValueRef::Array(array) => {
            let mut elements = ArrayBuf::new();
            for element in array.iter() {
                elements.push(normalized(element).as_ref());
            }
            Value::Array(elements)
        }
        value => value.to_value(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_source_is_written_the_same_way() {
        let series = DocumentBuf::new().with("timeField", "t").with("metaField", "m");
        let series = TimeSeries::parse(series.as_ref(), "create.timeseries").expect("valid");
        let inner = DocumentBuf::new().with("z", 1).with("y", 2);
        let meta = DocumentBuf::new().with("b", &inner).with("a", 1);
        let document = DocumentBuf::new().with("t", ValueRef::DateTime(5)).with("m", &meta);
        let measurement = Measurement::of(document.as_ref(), &series).expect("a measurement");
        let inner = DocumentBuf::new().with("y", 2).with("z", 1);
        let sorted = DocumentBuf::new().with("a", 1).with("b", &inner);
        let normalized = measurement.normalized_meta().expect("it has a source");
        assert_eq!(normalized.as_ref().as_document(), Some(sorted.as_ref()));
        assert!(Measurement::of(DocumentBuf::new().with("t", 5).as_ref(), &series).is_err());
    }
}
