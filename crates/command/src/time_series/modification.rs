//! `collMod` of a time series: longer spans of buckets, and the expiry of measurements.

use super::{Series, creation};
use crate::commands::coll_mod;
use crate::expiry_option::{self, Expiry};
use crate::invocation::Invocation;
use bunko_bson::{Collator, DocumentBuf};
use bunko_catalog::{Namespace, ViewDefinition};
use bunko_errors::{ErrorCode, Failure, Result};

/// Options that a time series does not have. `cappedSize` and `cappedMax` are missing here because MongoDB accepts them
/// without effect.
const REFUSED: &[&str] =
    &["validator", "validationLevel", "validationAction", "viewOn", "pipeline", "changeStreamPreAndPostImages"];

/// Makes the requested changes.
/// # Errors
/// `InvalidOptions` for options that a time series cannot have and for spans that would shrink; errors of the storage.
pub(crate) fn modify(
    invocation: &mut Invocation<'_>,
    namespace: &Namespace,
    series: &Series,
    expiry: Expiry,
) -> Result<()> {
    if let Some(option) = REFUSED.iter().find(|option| invocation.field(option).is_some()) {
        let message = format!("option not supported on a time-series collection: {option}");
        return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
    }
    let change = invocation.document("timeseries")?;
    let changed = match change {
        Some(change) => series.options.changed(change, "collMod.timeseries")?,
        None => series.options.clone(),
    };
    if changed == series.options && expiry == Expiry::Unchanged {
        return Ok(());
    }
    let buckets = series.buckets.namespace();
    let catalog = &invocation.service.catalog;
    let mut command = DocumentBuf::new().with(coll_mod::COMMAND.name, buckets.collection());
    for option in ["timeseries", expiry_option::NAME] {
        if let Some(value) = invocation.field(option) {
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
        Ok(expiry.put_into(next.as_ref()))
    })?;
    if changed == series.options {
        invocation.note_written(lsn);
        return Ok(());
    }
    let pipeline = creation::pipeline(&changed);
    let collation = series.buckets.strings().collator().map(Collator::specification);
    let view = ViewDefinition::new(namespace, buckets.collection(), pipeline.as_ref(), collation);
    let view_lsn = catalog.change_view(namespace, &view, &*invocation)?;
    invocation.note_written(lsn.max(Some(view_lsn)));
    Ok(())
}
