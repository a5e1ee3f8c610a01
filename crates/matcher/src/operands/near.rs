//! Points of searches by distance.

use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_geometry::Near;
use std::sync::Arc;

/// The point of a search by distance.
#[derive(Clone, Debug)]
pub struct NearPoint {
    /// The point and the distances.
    pub near: Arc<Near>,
    /// The operators as written.
    pub(crate) source: DocumentBuf,
}

impl NearPoint {
    /// Makes a search near a point that comes from no filter.
    pub fn new(near: Near) -> Self {
        Self { near: Arc::new(near), source: DocumentBuf::new() }
    }
}

/// Parses a point and the distance bounds.
/// # Errors
/// MongoDB's codes for invalid points and distances.
pub fn near_of(operators: DocumentRef<'_>) -> Result<Near> {
    Near::parse(operators).map_err(|failure| Failure::new(ErrorCode(failure.code), failure.reason))
}
