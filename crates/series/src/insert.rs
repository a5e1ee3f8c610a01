//! Inserts measurements: into the open bucket of their source, or into new ones.

use crate::series::Series;
use crate::writes::SeriesWrites;
use bunko_bson::{DocumentRef, ValueRef};
use bunko_catalog::{GeoField, Inserted, Order, RetryableWrite, Target, Verdict};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationSource;
use bunko_timeseries::{Bucket, Measurement};
use std::borrow::Cow;

/// Measurements of one source in an insert.
struct OfSource<'d> {
    source: Vec<u8>,
    measurements: Vec<Measurement<'d>>,
    /// Position of each measurement in the insert.
    positions: Vec<usize>,
    /// Statement ids of the measurements, if the insert is retryable.
    statements: Vec<i32>,
}

impl SeriesWrites<'_> {
    /// Stores documents as measurements. Failures have positions, as for an insert into a collection.
    pub fn insert(&self, series: &Series, documents: &[Cow<'_, [u8]>], order: Order) -> Inserted {
        let mut inserted = Inserted::default();
        let mut sources: Vec<OfSource<'_>> = Vec::new();
        let statements = RetryableWrite::of(self.operation).map(RetryableWrite::inserts);
        let gathering = match order {
            // Measurements after a refused one must not be stored.
            Order::Ordered if may_refuse(series) => Gathering::Neighbours,
            Order::Ordered | Order::Unordered => Gathering::All,
        };
        for (position, document) in documents.iter().enumerate() {
            match Measurement::of(DocumentRef::trusted(document), &series.options) {
                Ok(measurement) => {
                    let statement = statements.as_ref().and_then(|statements| statements.at(position));
                    add(&mut sources, (position, measurement, statement), gathering);
                }
                Err(failure) => {
                    inserted.failures.push((position, failure));
                    if order == Order::Ordered {
                        break;
                    }
                }
            }
        }
        for of_source in &sources {
            let mut stored = 0;
            while stored < of_source.measurements.len() {
                match self.store(series, of_source, stored, &mut inserted) {
                    Ok(Stored::Some(taken)) => stored += taken,
                    Ok(Stored::Refused(failure)) => {
                        if order == Order::Ordered {
                            inserted.failures = vec![(of_source.positions[stored], failure)];
                            return inserted;
                        }
                        inserted.failures.push((of_source.positions[stored], failure));
                        stored += 1;
                    }
                    Err(failure) => {
                        inserted.stopped_by = Some(failure);
                        return inserted;
                    }
                }
            }
        }
        inserted.failures.sort_by_key(|(position, _)| *position);
        inserted
    }

    /// Stores the measurement at `next`, and as many after it as the bucket takes.
    fn store(&self, series: &Series, of_source: &OfSource<'_>, next: usize, inserted: &mut Inserted) -> Result<Stored> {
        let (source, measurements) = (of_source.source.as_slice(), &of_source.measurements[next..]);
        let open = self.open_buckets.get(series.buckets.uuid, source);
        if let Some(id) = open
            && let Some(record) = series.buckets.record_of_id(ValueRef::ObjectId(id), self.operation)?
        {
            let mut taken = 0;
            let target = Target::Id(record, ValueRef::ObjectId(id));
            let changed = self.catalog.change(&series.buckets, target, self.operation, &mut |document| {
                let mut bucket = Bucket::read(document, &series.options, self.operation.operation())?;
                // An update may have changed the bucket's source.
                taken = if bucket.is_of(source) { fill(&mut bucket, series, measurements) } else { 0 };
                begin_statements(self.operation, of_source, next, taken);
                Ok(if taken == 0 { Verdict::Keep } else { Verdict::Replace(bucket.document(&series.options)) })
            });
            let lsn = match changed {
                // A bucket of its own shows whether the measurement is the cause.
                Err(_) if may_refuse(series) => return self.store_anew(series, of_source, (next, 1), inserted),
                changed => changed?,
            };
            if lsn.is_some() {
                self.operation.operation().note_change();
                inserted.lsn = inserted.lsn.max(lsn);
                inserted.count += taken;
                return Ok(Stored::Some(taken));
            }
        }
        self.store_anew(series, of_source, (next, usize::MAX), inserted)
    }

    /// Stores measurements from `next` on in a new bucket: as many as it takes, and at most `count_max`.
    fn store_anew(
        &self,
        series: &Series,
        of_source: &OfSource<'_>,
        (next, count_max): (usize, usize),
        inserted: &mut Inserted,
    ) -> Result<Stored> {
        let measurements = &of_source.measurements[next..];
        let measurements = &measurements[..measurements.len().min(count_max)];
        let unique = self.stamps.object_id();
        let mut bucket = Bucket::new(&measurements[0], &series.options, unique);
        let taken = fill(&mut bucket, series, measurements).max(1);
        begin_statements(self.operation, of_source, next, taken);
        let document = bucket.document(&series.options);
        let id = document.as_ref().get("_id");
        let bytes = Cow::Borrowed(document.as_ref().as_bytes());
        let namespace = series.buckets.namespace();
        let mut stored = self.catalog.insert(&namespace, &[bytes], Order::Ordered, self.operation)?;
        match stored.failures.pop() {
            // Another bucket has that id. The next try uses another one.
            Some((_, failure)) if failure.code() == ErrorCode::DUPLICATE_KEY => return Ok(Stored::Some(0)),
            Some((_, failure)) if taken == 1 => return Ok(Stored::Refused(failure)),
            Some(_) => return self.store_anew(series, of_source, (next, 1), inserted),
            None => {}
        }
        if let Some(failure) = stored.stopped_by {
            return Err(failure);
        }
        self.operation.operation().note_change();
        inserted.lsn = inserted.lsn.max(stored.lsn);
        inserted.count += taken;
        if let Some(ValueRef::ObjectId(id)) = id {
            self.open_buckets.set(series.buckets.uuid, &of_source.source, id);
        }
        Ok(Stored::Some(taken))
    }
}

/// Which measurements of one source are stored together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gathering {
    All,
    /// Only those that follow each other directly.
    Neighbours,
}

/// Whether the storage may refuse a measurement, because a geo index has no keys for it.
fn may_refuse(series: &Series) -> bool {
    series.buckets.indexes().iter().any(|index| GeoField::is_in(index.document.as_ref()))
}

fn add<'d>(
    sources: &mut Vec<OfSource<'d>>,
    (position, measurement, statement): (usize, Measurement<'d>, Option<i32>),
    gathering: Gathering,
) {
    let source = measurement.source();
    let known = match gathering {
        Gathering::All => sources.iter_mut().find(|of_source| of_source.source == source),
        Gathering::Neighbours => sources.last_mut().filter(|of_source| of_source.source == source),
    };
    match known {
        Some(of_source) => {
            of_source.measurements.push(measurement);
            of_source.positions.push(position);
            of_source.statements.extend(statement);
        }
        None => sources.push(OfSource {
            source,
            measurements: vec![measurement],
            positions: vec![position],
            statements: statement.into_iter().collect(),
        }),
    }
}

/// The outcome of storing the next measurements.
enum Stored {
    /// That many are stored; zero means that the caller must try again.
    Some(usize),
    /// The first is refused.
    Refused(Failure),
}

/// Names the statements of a retryable insert that the next write carries out.
fn begin_statements(operation: &dyn OperationSource, of_source: &OfSource<'_>, next: usize, taken: usize) {
    if let Some(write) = RetryableWrite::of(operation) {
        write.begin_some(of_source.statements.get(next..next + taken).unwrap_or_default().iter().copied());
    }
}

/// Puts measurements into a bucket until it is full. Returns their number.
fn fill(bucket: &mut Bucket, series: &Series, measurements: &[Measurement<'_>]) -> usize {
    let mut taken = 0;
    for measurement in measurements {
        if !bucket.takes(measurement, &series.options) {
            break;
        }
        bucket.add(measurement, &series.options);
        taken += 1;
    }
    taken
}
