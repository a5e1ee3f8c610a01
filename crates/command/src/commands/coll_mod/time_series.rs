//! `collMod` of a time series: longer spans of buckets, and the expiry of measurements.

use super::{COMMAND, CollMod};
use crate::expiry_option::{self, Expiry};
use crate::invocation::Invocation;
use bunko_bson::{Collator, DocumentBuf, ValueRef};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_series::Series;

/// Options that a time series does not have. `cappedSize` and `cappedMax` are missing here because MongoDB accepts them
/// without effect.
const REFUSED: &[&str] =
    &["validator", "validationLevel", "validationAction", "viewOn", "pipeline", "changeStreamPreAndPostImages"];

/// Makes the requested changes.
/// # Errors
/// `InvalidOptions` for options that a time series cannot have and for spans that would shrink; errors of the storage.
pub(super) fn modify(
    invocation: &mut Invocation<'_>,
    namespace: &Namespace,
    series: &Series,
    request: &CollMod<'_>,
) -> Result<()> {
    if let Some(option) = REFUSED.iter().find(|option| request.is_given(option)) {
        let message = format!("option not supported on a time-series collection: {option}");
        return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
    }
    let changed = match request.given("timeseries").and_then(ValueRef::as_document) {
        Some(change) => series.options.changed(change, "collMod.timeseries")?,
        None => series.options.clone(),
    };
    if changed == series.options && request.expiry == Expiry::Unchanged {
        return Ok(());
    }
    let buckets = series.buckets.namespace();
    let catalog = &invocation.service.catalog;
    let mut command = DocumentBuf::new().with(COMMAND.name, buckets.collection());
    for option in ["timeseries", expiry_option::NAME] {
        if let Some(value) = request.given(option) {
            command.append(option, value);
        }
    }
    let lsn = catalog.change_options(&buckets, &command, &*invocation, &mut |options| {
        let mut next = DocumentBuf::new();
        for element in options {
            if element.name == "timeseries" {
                next.append("timeseries", &changed.document());
            } else {
                next.append(element.name, element.value);
            }
        }
        Ok(request.expiry.put_into(next.as_ref()))
    })?;
    invocation.note_written(lsn);
    if changed != series.options {
        let collation = series.buckets.strings().collator().map(Collator::specification);
        let view = bunko_series::view(namespace, &changed, collation)?;
        let lsn = catalog.change_view(namespace, &view, &*invocation)?;
        invocation.note_written(Some(lsn));
    }
    Ok(())
}
