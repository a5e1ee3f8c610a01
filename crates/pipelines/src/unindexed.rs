//! Reads of a collection that has no indexes.

use bunko_aggregate::{Pipeline, Plannable};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_query::Hint;
use bunko_store::Direction;

/// Refuses a pipeline whose first stage needs an index.
/// # Errors
/// `IndexNotFound`.
pub(crate) fn check_searches(pipeline: &Pipeline) -> Result<()> {
    let missing = |message: &str| Err(Failure::new(ErrorCode::INDEX_NOT_FOUND, message));
    if pipeline.searches_text() {
        return missing("text index required for $text query");
    }
    let is_near = pipeline.stages().next().is_some_and(|stage| matches!(stage.plannable(), Plannable::Near(_)));
    if is_near { missing("unable to find index for $geoNear query") } else { Ok(()) }
}

/// The direction that a hint gives for reading a collection without indexes.
/// # Errors
/// `BadValue` for an index hint.
pub fn direction(hint: Option<&Hint>) -> Result<Direction> {
    match hint {
        None => Ok(Direction::Forward),
        Some(Hint::Natural(direction)) => Ok(*direction),
        Some(Hint::Name(_) | Hint::KeyPattern(_)) => {
            Err(Failure::bad_value("hint provided does not correspond to an existing index"))
        }
    }
}
