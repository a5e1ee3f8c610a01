//! `$out`: replaces the documents of a collection.

use super::{Definition, Stages};
use crate::stage_fields::StageFields;
use crate::{Environment, OutTarget, SourceName, WriteStage};
use bunko_bson::{StringUse, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_timeseries::TimeSeries;

pub(super) const DEFINITION: Definition = Definition { facts: &bunko_stages::OUT, strings: StringUse::AsBytes, parse };

fn failure(code: i32, message: String) -> Failure {
    Failure::new(ErrorCode(code), message)
}

/// Errors: 16990 if it is not a target; `IDLUnknownField`, `IDLDuplicateField` and `IDLFailedToParse` for fields; 17385
/// and 31321 for internal targets; errors of the time series options.
fn parse(value: ValueRef<'_>, _: &Environment) -> Result<Stages> {
    let mut series = None;
    let target = match value {
        ValueRef::String(collection) => SourceName::here(collection),
        ValueRef::Document(specification) => {
            let fields = StageFields::new("$out", specification, &["db", "coll", "timeseries"])?;
            let collection = fields.required("coll", fields.string("coll")?)?.to_owned();
            let database = fields.required("db", fields.string("db")?)?.to_owned();
            let options = fields.document("timeseries")?;
            series = options.map(|options| TimeSeries::parse(options, "$out.timeseries")).transpose()?;
            SourceName { database: Some(database), collection }
        }
        other => {
            let kind = other.kind().alias();
            return Err(failure(16990, format!("$out only supports a string or object argument, but found {kind}")));
        }
    };
    if target.collection.starts_with("system.") {
        return Err(failure(17385, format!("Can't $out to special collection: {}", target.collection)));
    }
    let database = target.database.clone();
    let out = WriteStage::Out(OutTarget { name: target, series });
    database.map_or(Ok(()), |database| out.check_database(&database))?;
    Ok(vec![Box::new(out)])
}
