//! Where in a pipeline stages may stand.

use crate::Environment;
use bunko_bson::{ArrayRef, DocumentRef, Element, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

/// Stages that begin a pipeline, too, and whose pipelines read the collection.
const FUSIONS: &[&str] = &["$rankFusion", "$scoreFusion"];
/// Stages that end one: they write.
const LAST: &[&str] = &["$merge", "$out"];
/// Stages of the pipeline that a client sent alone.
const OUTERMOST: &[&str] = &["$changeStream", SPLIT, "$merge", "$out"];
/// The stage that stands behind a `$changeStream` alone.
const SPLIT: &str = "$changeStreamSplitLargeEvent";
/// Stages that do not stand in a facet, sorted.
const NOT_IN_FACET: &[&str] = &[
    "$changeStream",
    "$changeStreamSplitLargeEvent",
    "$collStats",
    "$currentOp",
    "$documents",
    "$facet",
    "$geoNear",
    "$indexStats",
    "$listCatalog",
    "$listClusterCatalog",
    "$listLocalSessions",
    "$listSampledQueries",
    "$listSearchIndexes",
    "$listSessions",
    "$merge",
    "$out",
    "$planCacheStats",
    "$querySettings",
    "$queryStats",
    "$rankFusion",
    "$scoreFusion",
    "$search",
    "$searchBeta",
    "$searchMeta",
    "$vectorSearch",
];

/// Checks the stages of one pipeline, by name and in their order.
/// # Errors
/// 10170100 for a stage that is not the first, 40601 for one that is not the last.
pub(crate) fn check(names: &[&str]) -> Result<()> {
    for (position, name) in names.iter().enumerate() {
        if position > 0 && FUSIONS.contains(name) {
            return Err(Failure::new(ErrorCode(10_170_100), format!("{name} must be the first stage of a pipeline")));
        }
        if position + 1 < names.len() && LAST.contains(name) {
            return Err(Failure::new(ErrorCode(40601), format!("{name} can only be the final stage in the pipeline")));
        }
    }
    Ok(())
}

/// Refuses the stage that splits events of a stream in a pipeline that has no such events.
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

/// Refuses stages that write, and streams of changes, in a pipeline inside another stage, which has a code of its own for
/// that.
pub(super) fn refuse_outermost(stages: ArrayRef<'_>, code: i32, stage: &str) -> Result<()> {
    match names(stages).find(|name| OUTERMOST.contains(name)) {
        Some(name) => {
            let message = format!("{name} is not allowed within a {stage}'s sub-pipeline");
            Err(Failure::new(ErrorCode(code), message))
        }
        None => Ok(()),
    }
}

/// Refuses a search of vectors in the pipeline of a `$lookup`.
/// # Errors
/// 51047.
pub(super) fn refuse_vector_search(stages: ArrayRef<'_>) -> Result<()> {
    if names(stages).any(|name| name == "$vectorSearch") {
        let message = "$vectorSearch is not allowed within a $lookup's sub-pipeline";
        return Err(Failure::new(ErrorCode(51047), message));
    }
    Ok(())
}

/// Refuses what must not stand in a facet, also where it stands in a pipeline inside one of its stages.
/// # Errors
/// 40600; `InvalidNamespace` for a stage that could not begin a pipeline over what the facet's is over either.
pub(super) fn check_facet(stages: ArrayRef<'_>, environment: &Environment) -> Result<()> {
    // What `$querySettings` is over is asked later than that.
    for name in names(stages).filter(|name| *name != "$querySettings") {
        environment.sources.check_source_stage(name, environment.over.as_ref())?;
    }
    check_in_facet(stages, None)
}

/// Checks the stages of a facet, or of a pipeline inside one of its stages, which has its own refusal of stages that write.
fn check_in_facet(stages: ArrayRef<'_>, outer: Option<&str>) -> Result<()> {
    for stage in stages.iter().filter_map(|stage| stage.as_document()?.first()) {
        let is_left_to_stage = outer.is_some() && LAST.contains(&stage.name);
        if NOT_IN_FACET.binary_search(&stage.name).is_ok() && !is_left_to_stage {
            let way = outer.map(|outer| format!(" inside of {outer}")).unwrap_or_default();
            let message = format!("{}{way} is not allowed to be used within a $facet stage", stage.name);
            return Err(Failure::new(ErrorCode(40600), message));
        }
        let inner = match (stage.name, stage.value) {
            ("$lookup" | "$unionWith", ValueRef::Document(body)) => body.get("pipeline").and_then(ValueRef::as_array),
            _ => None,
        };
        if let Some(inner) = inner {
            check_in_facet(inner, Some(stage.name))?;
        }
    }
    Ok(())
}

fn names(stages: ArrayRef<'_>) -> impl Iterator<Item = &str> {
    stages.iter().filter_map(|stage| Some(stage.as_document()?.first()?.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_halves() {
        assert!(NOT_IN_FACET.is_sorted_by(|one, next| one < next));
    }
}
