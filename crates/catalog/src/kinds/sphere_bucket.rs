//! Indexes of the places in a bucket of a time series, by their cells: `{'data.a': '2dsphere_bucket', meta: 1}`. An
//! index on measurements `{a: '2dsphere'}` becomes such an index on buckets.

use super::sphere::{Version, read_named};
use crate::index_kind::{KindEntry, ReadKind};
use bunko_bson::{DocumentRef, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_geometry::{Cell, Stored, covering_of_shape, values_at};

pub(super) const ENTRY: KindEntry = KindEntry { name: NAME, options: &["2dsphereIndexVersion"], read };

const NAME: &str = "2dsphere_bucket";
/// The field of a bucket that has its columns.
const COLUMNS: &str = "data";

fn read(key: DocumentRef<'_>, spec: DocumentRef<'_>) -> Result<ReadKind> {
    read_named(NAME, cells, key, spec)
}

/// The numbers of the cells of the points in a column, or at a path within its values.
/// # Errors
/// 183934 for a value that is not a place, 183493 for a place that is not a point.
fn cells(bucket: DocumentRef<'_>, path: &str, _version: Version) -> Result<Vec<Value>> {
    let path = path.strip_prefix(COLUMNS).and_then(|path| path.strip_prefix('.')).unwrap_or(path);
    let (column, rest) = path.split_once('.').map_or((path, None), |(column, rest)| (column, Some(rest)));
    let columns = bucket.get(COLUMNS).and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY);
    let values = columns.get(column).and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY);
    let mut numbers = Vec::new();
    for row in values {
        match (rest, row.value) {
            (None, value) => add_cells(value, &mut numbers)?,
            (Some(rest), _) => {
                let path = format!("{}.{rest}", row.name);
                values_at(values, &path).into_iter().try_for_each(|value| add_cells(value, &mut numbers))?;
            }
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers.into_iter().map(Value::Int64).collect())
}

fn add_cells(value: ValueRef<'_>, numbers: &mut Vec<i64>) -> Result<()> {
    let no_keys = |reason: &str| Failure::new(ErrorCode(183_934), format!("Can't extract geo keys: {reason}"));
    let stored = Stored::parse(value).map_err(|reason| no_keys(&reason))?;
    if stored.flat().is_none() {
        let message = "Time-series collections '2dsphere' indexes only support point data";
        return Err(Failure::new(ErrorCode(183_493), message));
    }
    let Some(shape) = stored.sphere() else {
        return Err(no_keys("longitude/latitude is out of bounds"));
    };
    numbers.extend(covering_of_shape(shape).into_iter().map(Cell::number));
    Ok(())
}
