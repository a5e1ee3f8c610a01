//! The stage `$changeStream`: where it stands in a pipeline, and who may open it.

use crate::{options, split};
use bunko_access::Action;
use bunko_authority::Asker;
use bunko_authority::privileges::has_on;
use bunko_authority::privileges::pipelines::PipelinePlace;
use bunko_bson::{ArrayRef, DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

/// The stage's name, including `$`.
pub(crate) const STAGE: &str = bunko_stages::CHANGE_STREAM.name;

/// Whether the client may open a stream: with the privileges on the whole cluster, or on the collection or database.
pub fn may_open(asker: &Asker<'_>, place: &PipelinePlace<'_>) -> bool {
    [Action::Find, Action::ChangeStream].into_iter().all(|action| {
        if has_on(place.options, "allChangesForCluster") {
            asker.on_all_databases(action)
        } else {
            place.allows(asker, action)
        }
    })
}

/// Whether a pipeline begins with `$changeStream`.
/// # Errors
/// 40602 if the stage is not the first, 6188500 if its specification is not an object, 40323 if it has other fields.
pub fn begins(stages: ArrayRef<'_>) -> Result<bool> {
    let is_it = |stage: &DocumentRef<'_>| stage.first().is_some_and(|first| first.name == STAGE);
    for stage in stages.iter().filter_map(ValueRef::as_document).filter(is_it) {
        if stage.count() != 1 {
            let message = "A pipeline stage specification object must contain exactly one field.";
            return Err(Failure::new(ErrorCode(40323), message));
        }
        options::checked_object(stage.get(STAGE).unwrap_or(ValueRef::Null))?;
    }
    let is_it = |stage: ValueRef<'_>| stage.as_document().is_some_and(|stage| is_it(&stage));
    let is_split = |stage: ValueRef<'_>| {
        stage.as_document().and_then(DocumentRef::first).is_some_and(|first| first.name == split::STAGE)
    };
    if stages.iter().take_while(|stage| !is_it(*stage)).any(is_split) {
        // Parsing the pipeline refuses it.
        return Ok(false);
    }
    if stages.iter().skip(1).any(is_it) {
        let message = format!("{STAGE} is only valid as the first stage in a pipeline.");
        return Err(Failure::new(ErrorCode(40602), message));
    }
    Ok(stages.iter().next().is_some_and(is_it))
}
