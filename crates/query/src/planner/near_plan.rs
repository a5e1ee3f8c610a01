//! Geospatial indexes: the index for a search by distance, and the keys of a region.

use super::choose::takes_all;
use super::predicates_of;
use crate::find_query::FindQuery;
use crate::near::{Measure, NearAsked, NearOutput, NearSearch};
use bunko_bson::StringOrder;
use bunko_catalog::{Collection, GeoField, Index, KeySpan};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_matcher::Expression;
use std::sync::Arc;

/// Whether a query searches by distance.
pub(super) fn is_near(query: &FindQuery) -> bool {
    query.near.is_some() || predicates_of(query.filter.root()).iter().any(|one| matches!(one, Expression::Near { .. }))
}

/// The search by distance of a query.
/// # Errors
/// `IndexNotFound` if no field is named, unless exactly one index decides the field.
pub(super) fn search(query: &FindQuery, collection: &Collection, indexes: &[Arc<Index>]) -> Result<Arc<NearSearch>> {
    if let Some(NearAsked { path, near, output }) = &query.near {
        let path = path.clone().map_or_else(|| only_path(collection, indexes), Ok)?;
        let (near, output) = (Arc::clone(near), output.clone());
        return Ok(Arc::new(NearSearch { path, near, output, measure: Measure::Angle }));
    }
    let predicates = predicates_of(query.filter.root());
    let found = predicates.iter().find_map(|predicate| match predicate {
        Expression::Near { path, point } => Some(Arc::new(NearSearch {
            path: path.as_str().to_owned(),
            near: Arc::clone(&point.near),
            output: NearOutput::default(),
            measure: Measure::Angle,
        })),
        _ => None,
    });
    found.ok_or_else(no_index)
}

fn no_index() -> Failure {
    let message = "$geoNear requires a 2d or 2dsphere index, but none were found";
    Failure::new(ErrorCode::INDEX_NOT_FOUND, message)
}

/// The first geospatial field of the only 2d index; without a 2d index, of the only 2dsphere index.
fn only_path(collection: &Collection, indexes: &[Arc<Index>]) -> Result<String> {
    for kind in ["2d", "2dsphere"] {
        let mut paths = indexes.iter().filter_map(|index| {
            let mut fields = index.key_pattern().iter();
            fields.find(|field| field.value.as_str() == Some(kind)).map(|field| field.name.to_owned())
        });
        match (paths.next(), paths.next()) {
            (None, _) => {}
            (Some(path), None) => return Ok(path),
            (Some(_), Some(_)) => {
                let namespace = collection.namespace();
                let message =
                    format!("There is more than one {kind} index on {namespace}; unsure which to use for $geoNear");
                return Err(Failure::new(ErrorCode::INDEX_NOT_FOUND, message));
            }
        }
    }
    Err(no_index())
}

/// The first index that supports distances at the search's path and holds all documents of the query.
pub(super) fn index_for(
    search: &NearSearch,
    query: &FindQuery,
    indexes: Vec<Arc<Index>>,
) -> Option<(Arc<Index>, GeoField)> {
    let predicates = predicates_of(query.filter.root());
    indexes.into_iter().find_map(|index| {
        let field = geo_field(&index, &search.path)?;
        let serves = !field.is_of_buckets() && field.serves(search.near.centre, search.near.is_geojson);
        (serves && takes_all(&index, predicates, &query.scope.strings)).then_some((index, field))
    })
}

/// The first index that serves a region which all matches satisfy, and the region's keys.
pub(super) fn region(
    indexes: &[Arc<Index>],
    predicates: &[Expression],
    strings: &StringOrder,
) -> Option<(Arc<Index>, Vec<KeySpan>)> {
    indexes.iter().find_map(|index| {
        let spans = spans(index, predicates)?;
        takes_all(index, predicates, strings).then(|| (Arc::clone(index), spans))
    })
}

/// The keys that a region may have in an index.
pub(super) fn spans(index: &Index, predicates: &[Expression]) -> Option<Vec<KeySpan>> {
    predicates.iter().find_map(|predicate| match predicate {
        Expression::Geo { path, geo } => {
            geo_field(index, path.as_str()).filter(|field| !field.is_of_buckets())?.keys_of_region(&geo.region)
        }
        Expression::BucketGeo { field, geo } => {
            let field = geo_field(index, &format!("data.{}", field.as_str()))?;
            Some(field).filter(GeoField::is_of_buckets)?.keys_of_region(&geo.region)
        }
        _ => None,
    })
}

/// The geospatial field of an index at a path.
fn geo_field(index: &Index, path: &str) -> Option<GeoField> {
    GeoField::of(index.document.as_ref(), path)
}
