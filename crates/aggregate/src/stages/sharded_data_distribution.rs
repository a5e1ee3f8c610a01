//! `$shardedDataDistribution`: how collections are spread over shards, which only a router of a sharded cluster knows.

use bunko_bson::{Element, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

/// The stage's name.
const STAGE: &str = bunko_stages::SHARDED_DATA_DISTRIBUTION.name;

/// Refuses the stage, as a mongod does.
/// # Errors
/// 6789100 if the specification is not an empty object, otherwise 6789101.
pub(super) fn refuse(stage: Element<'_>) -> Result<()> {
    if stage.name != STAGE {
        return Ok(());
    }
    if !matches!(stage.value, ValueRef::Document(specification) if specification.is_empty()) {
        let message = format!("The {STAGE} stage specification must be an empty object");
        return Err(Failure::new(ErrorCode(6_789_100), message));
    }
    Err(Failure::new(ErrorCode(6_789_101), format!("The {STAGE} stage can only be run on router")))
}
