//! `$near` and `$nearSphere`: an index says where to look first.

use super::predicates_of;
use bunko_matcher::{Expression, NearPoint, Path};

/// The field and the point that documents are asked to be near to.
pub(super) fn asked_for(root: &Expression) -> Option<(&Path, &NearPoint)> {
    predicates_of(root).iter().find_map(|predicate| match predicate {
        Expression::Near { path, point } => Some((path, point)),
        _ => None,
    })
}
