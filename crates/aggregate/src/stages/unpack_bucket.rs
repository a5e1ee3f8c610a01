//! `$_internalUnpackBucket`: unpacks the measurements of time series buckets. Views over such collections begin with
//! it.

use super::{Definition, Reads, Stage, Stages};
use crate::metadata::Carried;
use crate::stage_fields::StageFields;
use crate::{DocumentStream, Environment};
use bunko_bson::{DocumentBuf, DocumentRef, StringUse, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::Dependencies;
use bunko_timeseries::{TimeSeries, Unpacked};
use std::sync::Arc;

pub(super) const DEFINITION: Definition =
    Definition { facts: &bunko_stages::INTERNAL_UNPACK_BUCKET, strings: StringUse::AsBytes, parse };

/// Bytes of measurements unpacked at a time.
const PART_BYTES: usize = 1 << 20;

/// Fields that describe how measurements were packed, and hints that do not change the result.
const FIELDS: &[&str] =
    &["timeField", "metaField", "bucketMaxSpanSeconds", "assumeNoMixedSchemaData", "usesExtendedRange", "fixedBuckets"];

struct UnpackBucket {
    series: TimeSeries,
    /// Fields of a bucket to copy into each of its measurements.
    kept: Vec<String>,
}

/// Errors: 5346500 if it is not an object, `IDLUnknownField`, 40414 without `timeField`, `TypeMismatch`.
fn parse(value: ValueRef<'_>, _: &Environment) -> Result<Stages> {
    let Some(specification) = value.as_document() else {
        let message = format!("$_internalUnpackBucket specification must be an object, got: {}", value.kind().alias());
        return Err(Failure::new(ErrorCode(5_346_500), message));
    };
    let fields = StageFields::new(DEFINITION.facts.name, specification, FIELDS)?;
    let time_field = fields.required("timeField", fields.string("timeField")?)?;
    let mut options = DocumentBuf::new().with("timeField", time_field);
    if let Some(meta_field) = fields.string("metaField")? {
        options.append("metaField", meta_field);
    }
    if let Some(span) = fields.field("bucketMaxSpanSeconds") {
        options.append("bucketMaxSpanSeconds", span);
    }
    Ok(vec![Box::new(UnpackBucket { series: TimeSeries::of_document(options.as_ref()), kept: Vec::new() })])
}

impl Stage for UnpackBucket {
    fn name(&self) -> &'static str {
        DEFINITION.facts.name
    }

    fn open(
        self: Arc<Self>,
        input: Box<dyn DocumentStream>,
        environment: &Arc<Environment>,
    ) -> Box<dyn DocumentStream> {
        let unpacked = Vec::new().into_iter();
        Box::new(Unpacking { stage: self, input, environment: Arc::clone(environment), unpacked, rest: None })
    }

    fn metadata(&self) -> Carried {
        // A measurement has no record of its own, so it has no metadata.
        Carried::Lost
    }

    fn add_dependencies(&self, dependencies: &mut Dependencies) -> Reads {
        dependencies.add_all();
        Reads::OnlyThese
    }

    fn bucket_filter(&self, filter: DocumentRef<'_>) -> Option<DocumentBuf> {
        bunko_timeseries::bucket_filter(filter, &self.series)
    }

    fn unpacked(&self) -> Option<&TimeSeries> {
        Some(&self.series)
    }

    fn keep(&mut self, fields: Vec<String>) {
        self.kept = fields;
    }
}

struct Unpacking {
    stage: Arc<UnpackBucket>,
    input: Box<dyn DocumentStream>,
    environment: Arc<Environment>,
    unpacked: std::vec::IntoIter<DocumentBuf>,
    /// A bucket that has more measurements, and the next row.
    rest: Option<(DocumentBuf, usize)>,
}

impl DocumentStream for Unpacking {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        loop {
            if let Some(measurement) = self.unpacked.next() {
                return Ok(Some(measurement));
            }
            let (bucket, from) = match self.rest.take() {
                Some(rest) => rest,
                None => match self.input.next()? {
                    Some(bucket) => (bucket, 0),
                    None => return Ok(None),
                },
            };
            let operation = self.environment.operation();
            let part = Unpacked::of(bucket.as_ref(), &self.stage.series, from, PART_BYTES, operation)?;
            let mut measurements = part.measurements;
            for field in &self.stage.kept {
                let Some(value) = bucket.as_ref().get(field) else { continue };
                for measurement in &mut measurements {
                    measurement.append(field, value);
                }
            }
            self.unpacked = measurements.into_iter();
            self.rest = part.next.map(|next| (bucket, next));
        }
    }
}
