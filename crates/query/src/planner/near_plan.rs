//! Geospatial indexes: the index for a search by distance, and the keys of a region.

use super::branch_scan::BranchScan;
use super::choose::takes_all;
use super::steps::Steps;
use super::{AccessPath, Builder, Order, geo_bounds};
use crate::find_query::FindQuery;
use crate::near::{Measure, NearAsked, NearOutput, NearSearch};
use crate::stages::GeoNear;
use bunko_bson::StringOrder;
use bunko_catalog::{Collection, GeoField, Index, Surface};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_geometry::Region;
use bunko_matcher::{Condition, Expression};
use bunko_store::Direction;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::Arc;

/// Steps of covering a region with cells.
const STEPS_PER_REGION: usize = 200;

/// Whether a query searches by distance.
pub(super) fn is_near(query: &FindQuery) -> bool {
    let is_search = |one: &Expression| matches!(one, Expression::OnPath(_, Condition::Near(_)));
    query.near.is_some() || query.filter.root().conjuncts().iter().any(is_search)
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
    let predicates = query.filter.root().conjuncts();
    let found = predicates.iter().find_map(|predicate| match predicate {
        Expression::OnPath(path, Condition::Near(point)) => Some(Arc::new(NearSearch {
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
    let predicates = query.filter.root().conjuncts();
    indexes.into_iter().find_map(|index| {
        let field = geo_field(&index, &search.path)?;
        let serves = !field.is_of_buckets() && field.serves(search.near.centre, search.near.is_geojson);
        (serves && takes_all(&index, predicates, &query.scope.strings)).then_some((index, field))
    })
}

/// The scans of a region that all matches satisfy, one by each index that serves it, with the other fields of the index
/// narrowed. Scans that narrow most fields come first; on a tie the oldest index does.
pub(super) fn regions(
    indexes: &[Arc<Index>],
    predicates: &[Expression],
    strings: &StringOrder,
    steps: &Steps<'_>,
) -> Vec<BranchScan> {
    if !predicates.iter().any(|predicate| region_at(predicate).is_some()) {
        return Vec::new();
    }
    let serves = |index: &&Arc<Index>| {
        GeoField::is_in(index.document.as_ref())
            && steps.take(index, predicates)
            && takes_all(index, predicates, strings)
    };
    let is_asked = |index: &&Arc<Index>| {
        let mut paths = predicates.iter().filter_map(|predicate| Some(region_at(predicate)?.0));
        paths.any(|path| geo_field(index, &path).is_some()) && steps.spend(STEPS_PER_REGION)
    };
    let served = indexes.iter().filter(serves).filter(is_asked);
    let mut found: Vec<_> = served.filter_map(|index| scan_of_region(index, predicates, strings)).collect();
    found.sort_by_key(|scan| Reverse(worth(scan)));
    found
}

/// The best of [`regions`].
pub(super) fn region(
    indexes: &[Arc<Index>],
    predicates: &[Expression],
    strings: &StringOrder,
    steps: &Steps<'_>,
) -> Option<BranchScan> {
    regions(indexes, predicates, strings, steps).into_iter().next()
}

/// How much a scan of a region narrows its index; greater is better. A field that is narrowed without all fields before it
/// is checked on keys.
fn worth(scan: &BranchScan) -> impl Ord + use<> {
    match scan {
        BranchScan::Keys(bounds, _) => {
            let narrowed = bounds.fields.iter().filter(|field| !field.is_full()).count();
            (!bounds.fields[0].is_full(), narrowed)
        }
        BranchScan::Region(..) => (true, 1),
    }
}

/// The scan of an index for a region among the conditions; `None` if it serves none of them.
pub(super) fn scan_of_region(
    index: &Arc<Index>,
    predicates: &[Expression],
    strings: &StringOrder,
) -> Option<BranchScan> {
    predicates.iter().find_map(|predicate| {
        let (path, region) = region_at(predicate)?;
        let is_of_buckets = matches!(predicate, Expression::BucketGeo { .. });
        let field = geo_field(index, &path).filter(|field| field.is_of_buckets() == is_of_buckets)?;
        if index.fields.len() == 1 {
            return Some(BranchScan::Region(Arc::clone(index), field.keys_of_region(region)?));
        }
        let numbers = field.numbers_of_region(region)?;
        let beside = geo_bounds::beside(index, predicates, strings);
        Some(BranchScan::Keys(geo_bounds::with_numbers(beside, &path, Some(numbers)), Direction::Forward))
    })
}

/// The region that a condition asks for, and its path in documents as they are stored.
fn region_at(predicate: &Expression) -> Option<(Cow<'_, str>, &Region)> {
    match predicate {
        Expression::OnPath(path, Condition::Geo(geo)) => Some((path.as_str().into(), &geo.region)),
        Expression::BucketGeo { field, geo } => Some((format!("data.{}", field.as_str()).into(), &geo.region)),
        _ => None,
    }
}

/// The geospatial field of an index at a path.
fn geo_field(index: &Index, path: &str) -> Option<GeoField> {
    GeoField::of(index.document.as_ref(), path)
}

impl Builder<'_> {
    /// The documents of a search by distance.
    pub(super) fn near(&mut self) -> Result<AccessPath> {
        let indexes = match self.hint() {
            None => self.allowed_indexes(),
            Some(hint) => vec![self.hinted(hint)?],
        };
        let search = search(self.query, self.collection, &indexes)
            .map_err(|failure| self.of_hidden(failure, |index| GeoField::is_in(index.document.as_ref())))?;
        let Some((index, field)) = index_for(&search, self.query, indexes) else {
            let code = ErrorCode::NO_QUERY_EXECUTION_PLANS;
            return Err(self.planner_error(code, "unable to find index for $geoNear query"));
        };
        let search = match field.surface {
            Surface::Plane(_) => Arc::new(NearSearch { measure: Measure::Chord, ..NearSearch::clone(&search) }),
            Surface::Sphere => search,
        };
        self.note(&index, index.multikey());
        let predicates = self.query.filter.root().conjuncts();
        let beside = if self.steps.take(&index, predicates) {
            geo_bounds::beside(&index, predicates, &self.query.scope.strings)
        } else {
            geo_bounds::beside(&index, &[], &self.query.scope.strings)
        };
        let stage = GeoNear { number: self.number(), beside, field, search };
        Ok(AccessPath { stage: Box::new(stage), order: Order::Any })
    }
}
