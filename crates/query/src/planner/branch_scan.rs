//! The scan of one branch of an `$or`.

use super::index_bounds::IndexBounds;
use bunko_catalog::{Index, KeySpan};
use bunko_store::Direction;
use std::sync::Arc;

/// The scan of one branch.
#[derive(Clone)]
pub(crate) enum BranchScan {
    Keys(IndexBounds, Direction),
    /// The keys that a region may have in a geospatial index.
    Region(Arc<Index>, Vec<KeySpan>),
}

impl BranchScan {
    pub fn index(&self) -> &Arc<Index> {
        match self {
            Self::Keys(bounds, _) => &bounds.index,
            Self::Region(index, _) => index,
        }
    }
}
