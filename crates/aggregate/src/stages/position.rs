//! The positions in a pipeline where stages are allowed.

use crate::Environment;
use bunko_bson::{ArrayRef, DocumentRef, Element, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_stages::{FacetUse, Inner, Nesting, Source, Stage};

/// The stage allowed only after a `$changeStream`.
const SPLIT: &str = bunko_stages::CHANGE_STREAM_SPLIT_LARGE_EVENT.name;

/// Checks the order of one pipeline's stages, by name.
/// # Errors
/// 10170100 for a stage that must be first and is not, 40601 for one that must be last and is not.
pub(crate) fn check(names: &[&str]) -> Result<()> {
    for (position, name) in names.iter().enumerate() {
        let Some(stage) = bunko_stages::find(name) else { continue };
        if position > 0 && stage.source == Source::Fusion {
            return Err(Failure::new(ErrorCode(10_170_100), format!("{name} must be the first stage of a pipeline")));
        }
        if position + 1 < names.len() && stage.writes() {
            return Err(Failure::new(ErrorCode(40601), format!("{name} can only be the final stage in the pipeline")));
        }
    }
    Ok(())
}

/// Refuses the stage that splits change events in a pipeline without such events.
/// # Errors
/// 7182800 for a specification that is not empty, `IllegalOperation`.
pub(super) fn refuse_outside_stream(stage: Element<'_>) -> Result<()> {
    if stage.name != SPLIT {
        return Ok(());
    }
    if !stage.value.as_document().is_some_and(DocumentRef::is_empty) {
        return Err(Failure::new(ErrorCode(7_182_800), format!("{SPLIT} spec should be an empty object")));
    }
    let message = format!("{SPLIT} can only be used in a $changeStream pipeline");
    Err(Failure::new(ErrorCode::ILLEGAL_OPERATION, message))
}

/// Refuses stages that write, and change streams, in the pipeline of another stage; `code` is that stage's error code.
pub(super) fn refuse_outermost(stages: ArrayRef<'_>, code: i32, stage: &str) -> Result<()> {
    match entries(stages).find(|stage| stage.nesting == Nesting::Outermost) {
        Some(Stage { name, .. }) => {
            let message = format!("{name} is not allowed within a {stage}'s sub-pipeline");
            Err(Failure::new(ErrorCode(code), message))
        }
        None => Ok(()),
    }
}

/// Refuses stages that only the pipeline of a `$lookup` may not contain: vector searches.
/// # Errors
/// 51047.
pub(super) fn refuse_vector_search(stages: ArrayRef<'_>) -> Result<()> {
    if let Some(Stage { name, .. }) = entries(stages).find(|stage| stage.nesting == Nesting::NotInLookup) {
        let message = format!("{name} is not allowed within a $lookup's sub-pipeline");
        return Err(Failure::new(ErrorCode(51047), message));
    }
    Ok(())
}

/// Refuses stages not allowed in a facet, also in pipelines inside the facet's stages.
/// # Errors
/// 40600; `InvalidNamespace` for a stage that cannot begin a pipeline over the facet's collection either.
pub(super) fn check_facet(stages: ArrayRef<'_>, environment: &Environment) -> Result<()> {
    // The collection of `$querySettings` is checked later.
    for name in names(stages).filter(|name| *name != bunko_stages::QUERY_SETTINGS.name) {
        environment.sources.check_source_stage(name, environment.over.as_ref())?;
    }
    check_in_facet(stages, None)
}

/// Checks the stages of a facet, or of a pipeline inside one; such a pipeline refuses stages that write itself.
fn check_in_facet(stages: ArrayRef<'_>, outer: Option<&str>) -> Result<()> {
    for stage in stages.iter().filter_map(|stage| stage.as_document()?.first()) {
        let Some(entry) = bunko_stages::find(stage.name) else { continue };
        let is_left_to_stage = outer.is_some() && entry.writes();
        if entry.facet == FacetUse::Refused && !is_left_to_stage {
            let way = outer.map(|outer| format!(" inside of {outer}")).unwrap_or_default();
            let message = format!("{}{way} is not allowed to be used within a $facet stage", stage.name);
            return Err(Failure::new(ErrorCode(40600), message));
        }
        let inner = match (entry.inner, stage.value) {
            (Inner::Joined { .. }, ValueRef::Document(body)) => body.get("pipeline").and_then(ValueRef::as_array),
            _ => None,
        };
        if let Some(inner) = inner {
            check_in_facet(inner, Some(stage.name))?;
        }
    }
    Ok(())
}

/// The entries of the stages that MongoDB has.
fn entries(stages: ArrayRef<'_>) -> impl Iterator<Item = &'static Stage> {
    names(stages).filter_map(bunko_stages::find)
}

fn names(stages: ArrayRef<'_>) -> impl Iterator<Item = &str> {
    stages.iter().filter_map(|stage| Some(stage.as_document()?.first()?.name))
}
