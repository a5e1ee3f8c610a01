//! Updates of the source of measurements: only for all measurements that a filter on their source matches.

use crate::series::Series;
use crate::writes::SeriesWrites;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_query::QueryScope;
use bunko_query::write::{UpdateOutcome, UpdateStatement, Upsert, Writes};
use bunko_timeseries::{TimeSeries, path_in_source};
use bunko_update::Targets;
use std::sync::Arc;

impl SeriesWrites<'_> {
    /// Runs an update of a time series as an update of its buckets.
    /// # Errors
    /// `InvalidOptions` for updates that a time series does not allow; errors of [`Writes::update`].
    pub fn update(
        &mut self,
        series: &Series,
        scope: &Arc<QueryScope>,
        statement: &UpdateStatement<'_>,
    ) -> Result<UpdateOutcome> {
        let buckets = series.buckets.namespace();
        let mut writes = Writes::new(self.catalog, &buckets, self.stamps, Arc::clone(scope));
        let outcome = update_buckets(&mut writes, series, statement);
        self.note_written(writes.written());
        outcome
    }
}

fn update_buckets(writes: &mut Writes<'_>, series: &Series, statement: &UpdateStatement<'_>) -> Result<UpdateOutcome> {
    let options = &series.options;
    if statement.targets == Targets::One {
        return Err(refused("Cannot perform a non-multi update on a time-series collection"));
    }
    if statement.upsert == Upsert::Yes {
        return Err(refused("Cannot perform an upsert on a time-series collection"));
    }
    let ValueRef::Document(update) = statement.update else {
        return Err(refused("Cannot perform an update on a time-series collection using a pipeline update"));
    };
    let filter = renamed_filter(statement.filter, options)?;
    let update = renamed_update(update, options)?;
    let statement = UpdateStatement {
        filter: filter.as_ref(),
        update: ValueRef::from(&update),
        constants: statement.constants,
        array_filters: statement.array_filters.clone(),
        targets: Targets::Many,
        upsert: Upsert::No,
        supplied: None,
        hint: statement.hint.clone(),
        sort: None,
        strings: statement.strings.clone(),
    };
    writes.update(&statement)
}

fn refused(message: &str) -> Failure {
    Failure::new(ErrorCode::INVALID_OPTIONS, message)
}

fn renamed_filter(filter: DocumentRef<'_>, options: &TimeSeries) -> Result<DocumentBuf> {
    let mut of_buckets = DocumentBuf::new();
    for element in filter {
        if let Some(path) = path_in_source(element.name, options) {
            of_buckets.append(&path, element.value);
        } else if let ("$and" | "$or" | "$nor", ValueRef::Array(parts)) = (element.name, element.value) {
            let mut all = ArrayBuf::new();
            for part in parts.iter() {
                let part =
                    part.as_document().ok_or_else(|| Failure::bad_value(format!("{} needs objects", element.name)))?;
                all.push(&renamed_filter(part, options)?);
            }
            of_buckets.append(element.name, &all);
        } else {
            return Err(refused(
                "Cannot perform an update on a time-series collection when querying on a field that is not the metaField",
            ));
        }
    }
    Ok(of_buckets)
}

fn renamed_update(update: DocumentRef<'_>, options: &TimeSeries) -> Result<DocumentBuf> {
    let mut of_buckets = DocumentBuf::new();
    for operator in update {
        let (true, ValueRef::Document(fields)) = (operator.name.starts_with('$'), operator.value) else {
            return Err(refused("Cannot perform a replacement of measurements in a time-series collection"));
        };
        let mut renamed_fields = DocumentBuf::new();
        for field in fields {
            let Some(path) = path_in_source(field.name, options) else {
                return Err(refused(
                    "Cannot perform an update on a time-series collection which updates a field that is not the metaField",
                ));
            };
            match (operator.name, field.value) {
                ("$rename", ValueRef::String(target)) => {
                    let Some(target) = path_in_source(target, options) else {
                        return Err(refused(
                            "Cannot rename the metaField of a time-series collection to another field",
                        ));
                    };
                    renamed_fields.append(&path, target.as_str());
                }
                (_, value) => {
                    renamed_fields.append(&path, value);
                }
            }
        }
        of_buckets.append(operator.name, &renamed_fields);
    }
    Ok(of_buckets)
}
