//! Unpacks the measurements of a bucket.

use crate::TimeSeries;
use bunko_bson::{DocumentBuf, DocumentRef, Elements, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;
use std::iter::Peekable;

/// Some measurements of a bucket.
#[derive(Debug, Default)]
pub struct Unpacked {
    /// In the order of the bucket's rows.
    pub measurements: Vec<DocumentBuf>,
    /// The row to continue with; `None` after the last row.
    pub next: Option<usize>,
}

/// A column, with its remaining pairs of row and value.
struct Column<'b> {
    name: &'b str,
    pairs: Peekable<Elements<'b>>,
}

impl Unpacked {
    /// Unpacks measurements from row `from` on until they reach `bytes_max` bytes; at least one.
    /// # Errors
    /// `BadValue` for a document that is not a bucket; `CommandNotSupported` for a compressed bucket; as
    /// `OperationContext::check`.
    pub fn of(
        bucket: DocumentRef<'_>,
        series: &TimeSeries,
        from: usize,
        bytes_max: usize,
        operation: &OperationContext,
    ) -> Result<Self> {
        check_version(bucket)?;
        let Some(ValueRef::Document(data)) = bucket.get("data") else {
            return Err(Failure::bad_value("a bucket of a time series must have an object 'data'"));
        };
        let mut times = None;
        let mut columns = Vec::new();
        for element in data {
            let ValueRef::Document(pairs) = element.value else {
                let message = format!("the column '{}' of a bucket must be an object", element.name);
                return Err(Failure::bad_value(message));
            };
            if element.name == series.time_field {
                times = Some(pairs);
            } else {
                columns.push(Column { name: element.name, pairs: pairs.iter().peekable() });
            }
        }
        let Some(times) = times else { return Ok(Self::default()) };
        let meta = bucket.get("meta");
        let mut unpacked = Self::default();
        let mut bytes = 0;
        for (position, time) in times.iter().enumerate() {
            operation.work(1 + columns.len())?;
            let is_wanted = position >= from;
            if is_wanted && bytes >= bytes_max && !unpacked.measurements.is_empty() {
                unpacked.next = Some(position);
                break;
            }
            let mut measurement = DocumentBuf::new();
            if is_wanted {
                measurement.append(&series.time_field, time.value);
                if let (Some(field), Some(meta)) = (series.source_field(), meta) {
                    measurement.append(field, meta);
                }
            }
            for column in &mut columns {
                if let Some(pair) = column.pairs.next_if(|pair| pair.name == time.name)
                    && is_wanted
                {
                    measurement.append(column.name, pair.value);
                }
            }
            if is_wanted {
                bytes += measurement.len_bytes();
                unpacked.measurements.push(measurement);
            }
        }
        Ok(unpacked)
    }
}

/// Checks that the columns are not compressed, as they are in versions 2 and 3.
fn check_version(bucket: DocumentRef<'_>) -> Result<()> {
    let control = bucket.get("control").and_then(ValueRef::as_document);
    match control.and_then(|control| control.get("version")).and_then(bunko_bson::number::as_i64_exact) {
        Some(1) => Ok(()),
        Some(version @ (2 | 3)) => Err(Failure::new(
            ErrorCode::COMMAND_NOT_SUPPORTED,
            format!("a compressed bucket of a time series (control.version {version}) is not supported yet"),
        )),
        _ => Err(Failure::bad_value("a bucket of a time series must have a 'control.version'")),
    }
}
