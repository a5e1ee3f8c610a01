//! A bucket that takes measurements.

use crate::column_bounds::Bound;
use crate::measurement::source_bytes;
use crate::{Measurement, TimeSeries, Unpacked};
use bunko_bson::{DocumentBuf, DocumentRef, ObjectId, Value, ValueRef, Writer};
use bunko_errors::Result;
use bunko_operation::OperationContext;
use std::collections::HashMap;

/// Maximum number of measurements in a bucket. Source: MongoDB 8.2, parameter `timeseriesBucketMaxCount`.
pub const MEASUREMENTS_MAX: usize = 1000;
/// Maximum number of bytes in a bucket with more than one measurement. Source: as above, `timeseriesBucketMaxSize`.
const BUCKET_BYTES_MAX: usize = 128_000;

/// A bucket, unpacked into measurements.
#[derive(Debug)]
pub struct Bucket {
    id: ObjectId,
    begin_ms: i64,
    meta: Option<Value>,
    rows: Vec<Row>,
    bytes: usize,
}

#[derive(Debug)]
struct Row {
    time_ms: i64,
    /// All fields except the source.
    fields: DocumentBuf,
}

impl Bucket {
    /// An empty bucket for measurements like `first`. The bucket's id keeps the last eight bytes of `unique`.
    pub fn new(first: &Measurement<'_>, series: &TimeSeries, unique: ObjectId) -> Self {
        let begin_ms = series.bucket_begin_ms(first.time_ms);
        let mut id = unique;
        // Seconds beyond 32 bits wrap around: the other bytes make the id unique.
        id.0[..4].copy_from_slice(&(begin_ms.div_euclid(1000) as u32).to_be_bytes());
        Self { id, begin_ms, meta: first.normalized_meta(), rows: Vec::new(), bytes: 0 }
    }

    /// Reads a stored bucket.
    /// # Errors
    /// As [`Unpacked::of`].
    pub fn read(bucket: DocumentRef<'_>, series: &TimeSeries, operation: &OperationContext) -> Result<Self> {
        let unpacked = Unpacked::of(bucket, series, 0, usize::MAX, operation)?;
        let Some(ValueRef::ObjectId(id)) = bucket.get("_id") else {
            return Err(bunko_errors::Failure::bad_value("a bucket of a time series must have an objectId as '_id'"));
        };
        let mut read = Self {
            id,
            begin_ms: begin_ms(bucket, series).unwrap_or(i64::MIN),
            meta: bucket.get("meta").map(ValueRef::to_value),
            rows: Vec::with_capacity(unpacked.measurements.len()),
            bytes: 0,
        };
        for measurement in &unpacked.measurements {
            read.add(&Measurement::of(measurement.as_ref(), series)?, series);
        }
        Ok(read)
    }

    /// Whether the bucket's measurements have this [source](Measurement::source).
    pub fn is_of(&self, source: &[u8]) -> bool {
        source_bytes(self.meta.as_ref()) == source
    }

    /// Whether the bucket has room for a measurement, which must have the bucket's source.
    pub fn takes(&self, measurement: &Measurement<'_>, series: &TimeSeries) -> bool {
        self.rows.is_empty()
            || (self.rows.len() < MEASUREMENTS_MAX
                && self.bytes + measurement.document.len_bytes() <= BUCKET_BYTES_MAX
                && series.spans(self.begin_ms, measurement.time_ms))
    }

    /// Adds a measurement.
    pub fn add(&mut self, measurement: &Measurement<'_>, series: &TimeSeries) {
        let mut fields = DocumentBuf::new();
        for field in measurement.document {
            if series.source_field() != Some(field.name) {
                fields.append(field.name, field.value);
            }
        }
        self.bytes += fields.len_bytes();
        let row = Row { time_ms: measurement.time_ms, fields };
        let place = self.rows.partition_point(|before| before.time_ms <= row.time_ms);
        self.rows.insert(place, row);
    }

    /// Keeps the measurements that `keep` accepts, which sees them as clients do. Returns how many were removed.
    /// # Errors
    /// As `keep`.
    pub fn retain(
        &mut self,
        series: &TimeSeries,
        mut keep: impl FnMut(DocumentRef<'_>) -> Result<bool>,
    ) -> Result<usize> {
        let before = self.rows.len();
        let rows = std::mem::take(&mut self.rows);
        for row in rows {
            let mut shown = DocumentBuf::new().with(&series.time_field, ValueRef::DateTime(row.time_ms));
            if let (Some(field), Some(meta)) = (series.source_field(), &self.meta) {
                shown.append(field, meta.as_ref());
            }
            for field in row.fields.as_ref() {
                if field.name != series.time_field {
                    shown.append(field.name, field.value);
                }
            }
            if keep(shown.as_ref())? {
                self.rows.push(row);
            }
        }
        Ok(before - self.rows.len())
    }

    /// Number of measurements.
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// The bucket in its stored form.
    pub fn document(&self, series: &TimeSeries) -> DocumentBuf {
        let mut names: Vec<&str> = vec![&series.time_field];
        let mut positions: HashMap<&str, usize> = HashMap::from([(names[0], 0)]);
        let mut columns: Vec<Vec<(usize, ValueRef<'_>)>> = vec![Vec::with_capacity(self.rows.len())];
        for (number, row) in self.rows.iter().enumerate() {
            for field in row.fields.as_ref() {
                let position = *positions.entry(field.name).or_insert_with(|| {
                    names.push(field.name);
                    columns.push(Vec::new());
                    names.len() - 1
                });
                columns[position].push((number, field.value));
            }
        }
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        writer.append("_id", self.id).begin_document("control").append("version", 1);
        for (bounds, make) in [("min", Bound::least as fn() -> Bound), ("max", Bound::greatest)] {
            writer.begin_document(bounds);
            for (name, column) in names.iter().zip(&columns) {
                if bounds == "min" && *name == series.time_field {
                    writer.append(name, ValueRef::DateTime(self.begin_ms));
                    continue;
                }
                let mut bound = make();
                for (_, value) in column {
                    bound.add(*value);
                }
                if let Some(value) = bound.value() {
                    writer.append(name, value.as_ref());
                }
            }
            writer.end();
        }
        writer.end();
        if let Some(meta) = &self.meta {
            writer.append("meta", meta.as_ref());
        }
        writer.begin_document("data");
        for (name, column) in names.iter().zip(&columns) {
            writer.begin_document(name);
            for (number, value) in column {
                writer.push(*number, *value);
            }
            writer.end();
        }
        writer.end().end();
        DocumentBuf::from_trusted(bytes)
    }
}

/// The first time of a stored bucket, rounded down.
fn begin_ms(bucket: DocumentRef<'_>, series: &TimeSeries) -> Option<i64> {
    let least = bucket.get("control")?.as_document()?.get("min")?.as_document()?;
    match least.get(&series.time_field)? {
        ValueRef::DateTime(begin_ms) => Some(begin_ms),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series() -> TimeSeries {
        let option = DocumentBuf::new().with("timeField", "t").with("metaField", "m");
        TimeSeries::parse(option.as_ref(), "create.timeseries").expect("valid")
    }

    fn measured(time_ms: i64, value: i32) -> DocumentBuf {
        DocumentBuf::new().with("v", value).with("t", ValueRef::DateTime(time_ms)).with("m", "s")
    }

    fn bucket_of(documents: &[DocumentBuf]) -> DocumentBuf {
        let series = series();
        let measurement = |document| Measurement::of(document, &series).expect("a measurement");
        let mut bucket = Bucket::new(&measurement(documents[0].as_ref()), &series, ObjectId([7; 12]));
        for document in documents {
            assert!(bucket.takes(&measurement(document.as_ref()), &series));
            bucket.add(&measurement(document.as_ref()), &series);
        }
        bucket.document(&series)
    }

    #[test]
    fn measurements_come_out_by_time_with_time_and_source_first() {
        let bucket = bucket_of(&[measured(60_005, 5), measured(60_001, 1), measured(60_003, 3)]);
        let operation = OperationContext::unlimited();
        let unpacked = Unpacked::of(bucket.as_ref(), &series(), 0, usize::MAX, &operation).expect("a bucket");
        let shown = |time_ms: i64, value: i32| {
            DocumentBuf::new().with("t", ValueRef::DateTime(time_ms)).with("m", "s").with("v", value)
        };
        assert_eq!(unpacked.measurements, [shown(60_001, 1), shown(60_003, 3), shown(60_005, 5)]);
        assert_eq!(unpacked.next, None);
        let read = Bucket::read(bucket.as_ref(), &series(), &operation).expect("a bucket");
        assert_eq!(read.document(&series()), bucket);
    }

    #[test]
    fn a_bucket_is_laid_out_as_mongodb_does() {
        let bucket = bucket_of(&[measured(60_005, 5), measured(60_001, 1)]);
        let bounds =
            |time_ms: i64, value: i32| DocumentBuf::new().with("t", ValueRef::DateTime(time_ms)).with("v", value);
        let control =
            DocumentBuf::new().with("version", 1).with("min", &bounds(60_000, 1)).with("max", &bounds(60_005, 5));
        let times = DocumentBuf::new().with("0", ValueRef::DateTime(60_001)).with("1", ValueRef::DateTime(60_005));
        let values = DocumentBuf::new().with("0", 1).with("1", 5);
        let data = DocumentBuf::new().with("t", &times).with("v", &values);
        let mut id = [7; 12];
        id[..4].copy_from_slice(&60_u32.to_be_bytes());
        let expected = DocumentBuf::new()
            .with("_id", ObjectId(id))
            .with("control", &control)
            .with("meta", "s")
            .with("data", &data);
        assert_eq!(bucket, expected);
    }

    #[test]
    fn rows_are_unpacked_some_at_a_time() {
        let documents: Vec<_> = (0..10).map(|number| measured(60_000 + i64::from(number), number)).collect();
        let bucket = bucket_of(&documents);
        let operation = OperationContext::unlimited();
        let mut from = Some(0);
        let mut parts = 0;
        let mut all = Vec::new();
        while let Some(row) = from {
            let part = Unpacked::of(bucket.as_ref(), &series(), row, 100, &operation).expect("a bucket");
            all.extend(part.measurements);
            from = part.next;
            parts += 1;
        }
        let whole = Unpacked::of(bucket.as_ref(), &series(), 0, usize::MAX, &operation).expect("a bucket");
        assert_eq!(all, whole.measurements);
        assert!(parts > 1);
    }

    #[test]
    fn a_bucket_takes_a_span_and_a_number_of_measurements() {
        let series = series();
        let first = measured(60_000, 0);
        let first = Measurement::of(first.as_ref(), &series).expect("a measurement");
        let mut bucket = Bucket::new(&first, &series, ObjectId([7; 12]));
        bucket.add(&first, &series);
        let late = measured(60_000 + 3_600_000, 0);
        assert!(!bucket.takes(&Measurement::of(late.as_ref(), &series).expect("a measurement"), &series));
        for _ in 1..MEASUREMENTS_MAX {
            assert!(bucket.takes(&first, &series));
            bucket.add(&first, &series);
        }
        assert!(!bucket.takes(&first, &series));
        let went = bucket.retain(&series, |shown| Ok(shown.get("v").is_none())).expect("no failure");
        assert_eq!((went, bucket.count()), (MEASUREMENTS_MAX, 0));
    }
}
