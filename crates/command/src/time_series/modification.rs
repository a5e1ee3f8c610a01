//! `collMod` of a time series: spans of buckets that grow.

use super::{Series, creation};
use crate::invocation::Invocation;
use bunko_bson::DocumentBuf;
use bunko_catalog::{Namespace, ViewDefinition};
use bunko_errors::{ErrorCode, Failure, Result};

/// Options that a time series does not have.
const REFUSED: &[&str] = &["validator", "validationLevel", "validationAction", "viewOn", "pipeline"];

/// Changes what the command asks for.
/// # Errors
/// `InvalidOptions` for options that it cannot have and spans that would shrink; `CommandNotSupported` for what is not
/// built yet.
pub(crate) fn modify(invocation: &mut Invocation<'_>, namespace: &Namespace, series: &Series) -> Result<()> {
    if let Some(option) = REFUSED.iter().find(|option| invocation.field(option).is_some()) {
        let message = format!("option not supported on a time-series collection: {option}");
        return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
    }
    for option in ["index", "expireAfterSeconds", "changeStreamPreAndPostImages", "cappedSize", "cappedMax"] {
        if invocation.field(option).is_some() {
            return Err(invocation.unsupported(&format!("{option} of a time-series collection")));
        }
    }
    let Some(change) = invocation.document("timeseries")? else { return Ok(()) };
    let changed = series.options.changed(change, "collMod.timeseries")?;
    if changed == series.options {
        return Ok(());
    }
    let buckets = series.buckets.namespace();
    let catalog = &invocation.service.catalog;
    let command = DocumentBuf::new().with("collMod", buckets.collection()).with("timeseries", change);
    let lsn = catalog.change_options(&buckets, &command, &*invocation, &mut |options| {
        let mut next = DocumentBuf::new();
        for element in options {
            if element.name == "timeseries" {
                next.append("timeseries", &changed.document());
            } else {
                next.append(element.name, element.value);
            }
        }
        Ok(next)
    })?;
    let pipeline = creation::pipeline(&changed);
    let view = ViewDefinition::new(namespace, buckets.collection(), pipeline.as_ref(), None);
    let view_lsn = catalog.change_view(namespace, &view, &*invocation)?;
    invocation.note_written(lsn.max(Some(view_lsn)));
    Ok(())
}
