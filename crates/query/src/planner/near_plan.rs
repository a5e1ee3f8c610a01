//! Geospatial indexes: which of them serves a search by distance, and which keys a region may have.

use super::predicates_of;
use crate::find_query::FindQuery;
use crate::near::{NearOutput, NearSearch};
use bunko_catalog::{GeoField, Index, KeySpan};
use bunko_matcher::Expression;
use std::sync::Arc;

/// The search by distance that a query asks for.
pub(super) fn search(query: &FindQuery) -> Option<Arc<NearSearch>> {
    if let Some(search) = &query.near {
        return Some(Arc::clone(search));
    }
    predicates_of(query.filter.root()).iter().find_map(|predicate| match predicate {
        Expression::Near { path, point } => Some(Arc::new(NearSearch {
            path: path.as_str().to_owned(),
            near: Arc::clone(&point.near),
            output: NearOutput::default(),
        })),
        _ => None,
    })
}

/// The first index that tells distances at the search's path.
pub(super) fn index_for(search: &NearSearch, indexes: Vec<Arc<Index>>) -> Option<(Arc<Index>, GeoField)> {
    indexes.into_iter().find_map(|index| {
        let field = geo_field(&index, &search.path)?;
        field.serves(search.near.centre, search.near.is_geojson).then_some((index, field))
    })
}

/// The first index in which the keys of a region stand that all documents have to do with, and those keys.
pub(super) fn region(indexes: &[Arc<Index>], predicates: &[Expression]) -> Option<(Arc<Index>, Vec<KeySpan>)> {
    indexes.iter().find_map(|index| Some((Arc::clone(index), spans(index, predicates)?)))
}

/// The keys in an index that a region may have.
pub(super) fn spans(index: &Index, predicates: &[Expression]) -> Option<Vec<KeySpan>> {
    predicates.iter().find_map(|predicate| match predicate {
        Expression::Geo { path, geo } => geo_field(index, path.as_str())?.keys_of_region(&geo.region),
        _ => None,
    })
}

/// An index's geospatial field at a path; one that leaves documents out serves no query.
fn geo_field(index: &Index, path: &str) -> Option<GeoField> {
    GeoField::of(index.document.as_ref(), path).filter(|_| index.partial_filter.is_none())
}
