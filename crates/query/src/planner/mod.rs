//! Plans queries by rules. Where these leave a choice between indexes, `contest` decides it.
//!
//! `{_id: value}` is looked up. Otherwise the plan scans the best index by [`choose`]'s rules, or one index for each
//! branch of an `$or`, or the whole collection. The filter is evaluated after the fetch unless the keys alone decide
//! it.

mod by_path;
mod candidates;
mod choose;
mod collated;
mod contenders;
mod covered_plan;
mod distinct_plan;
mod index_bounds;
mod intervals;
mod key_ranges;
mod key_window;
mod near_plan;
mod or_plan;
mod predicates;
mod rejection;
mod room;
mod scans;
mod sort_order;
mod steps;
mod text_plan;
mod whole_scan;

pub(crate) use index_bounds::{IndexBounds, names_array_index};
pub(crate) use intervals::{Edge, IntervalRef, Intervals};
pub(crate) use key_ranges::{KeyRanges, RangeRef};
pub(crate) use key_window::KeyWindow;
use near_plan::is_near;
pub(crate) use rejection::{has_too_many_scans_to_merge, rejections};
pub(crate) use text_plan::names_text;

use crate::AllowedIndexes;
use crate::expr_filter::CollectionScans;
use crate::find_query::{DistinctOf, FindQuery, KeyBounds};
use crate::hint::Hint;
use crate::id_lookup::{can_look_up, is_plain_id};
use crate::near::{Measure, NearSearch};
use crate::plan::{Contender, Effort, Parts, Plan, UsedIndex};
use crate::stages::{
    DistinctScan, DocumentStage, Eof, GeoNear, Limit, ProjectionStage, ReturnKey, Skip, Sort, StageNumber,
};
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentRef, StringOrder, Value, ValueRef, order};
use bunko_catalog::{Answers, Collection, GeoField, Index, IndexFilter, Surface};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_matcher::{Comparison, Expression};
use bunko_store::{Direction, KeyspaceId};
use choose::Candidate;
use std::sync::Arc;
use steps::Steps;

/// Minimum size of a filter whose plan has its memory counted.
const LARGE_FILTER_BYTES: usize = 64 * 1024;

/// Plans a query over a collection.
/// # Errors
/// `BadValue` for a hint that names no usable index. For `min` and `max`: `NoQueryExecutionPlans` without a hint or
/// with `$natural`; 51174 if they do not fit the index; 51175 if they are in the wrong order; 6137400 and 6137401 with
/// the own index of a clustered collection.
pub fn plan(collection: &Arc<Collection>, query: impl Into<Arc<FindQuery>>) -> Result<Plan> {
    build(collection, &query.into(), None)
}

/// The indexes of a plan that was chosen among others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chosen {
    One(KeyspaceId),
    /// The intersection of two.
    Both(KeyspaceId, KeyspaceId),
}

/// Plans the query by these indexes; `None` if they do not serve it.
/// # Errors
/// As [`plan`].
pub(crate) fn plan_by(collection: &Arc<Collection>, query: &Arc<FindQuery>, chosen: Chosen) -> Result<Option<Plan>> {
    let plan = build(collection, query, Some(chosen))?;
    Ok((plan.chosen() == Some(chosen)).then_some(plan))
}

fn build(collection: &Arc<Collection>, query: &Arc<FindQuery>, chosen: Option<Chosen>) -> Result<Plan> {
    let settings = query.scope.settings.as_deref();
    let allowed = settings.and_then(|settings| settings.allowed_in(collection.namespace().as_str()));
    match build_among(collection, query, chosen, allowed) {
        // The allowed indexes do not serve the query, so it is planned without the settings.
        Err(failure) if allowed.is_some() && failure.code() == ErrorCode::NO_QUERY_EXECUTION_PLANS => {
            build_among(collection, query, chosen, None)
        }
        built => built,
    }
}

fn build_among(
    collection: &Arc<Collection>,
    query: &Arc<FindQuery>,
    chosen: Option<Chosen>,
    allowed: Option<&AllowedIndexes>,
) -> Result<Plan> {
    let operation = &query.scope.operation;
    let is_large = query.filter_document.as_ref().len_bytes() > LARGE_FILTER_BYTES;
    if is_large {
        operation.will_take(room::of_plan(query.filter.root(), &query.scope.strings))?;
    }
    // Settings override index filters.
    let index_filter = if allowed.is_none() { index_filter(collection, query) } else { None };
    let is_filtered = index_filter.is_some();
    let (used, contenders) = (Vec::new(), Vec::new());
    let (stages, is_covered, steps) = (0, false, Steps::new());
    let mut builder =
        Builder { collection, query, index_filter, allowed, chosen, stages, is_covered, used, contenders, steps };
    let root = builder.root()?;
    operation.work(builder.steps.used())?;
    if is_large {
        operation.check()?;
    }
    let Builder { stages, used, contenders, steps, .. } = builder;
    let (collection, query, is_stopped) = (Arc::clone(collection), Arc::clone(query), steps.are_used_up());
    Ok(Plan::new(Parts { collection, query, root, stages, used, contenders, is_filtered, is_stopped }))
}

/// The index filter for queries of this shape, if an administrator set one.
fn index_filter(collection: &Collection, query: &FindQuery) -> Option<Arc<IndexFilter>> {
    let filters = collection.index_filters();
    if filters.is_empty() {
        return None;
    }
    filters.get(query.shape().as_bytes()).cloned()
}

/// The conjuncts of an expression.
fn predicates_of(expression: &Expression) -> &[Expression] {
    match expression {
        Expression::And(children) => children,
        other => std::slice::from_ref(other),
    }
}

/// A stage that yields documents, and whether they come in the query's order.
struct AccessPath {
    stage: Box<dyn DocumentStage>,
    order: Order,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    AsAsked,
    Any,
}

/// Builds one plan, bottom up; stages are numbered as they are made.
struct Builder<'q> {
    collection: &'q Arc<Collection>,
    query: &'q FindQuery,
    /// Restricts the indexes; hints are ignored then, as on MongoDB.
    index_filter: Option<Arc<IndexFilter>>,
    /// Restricts the indexes by the settings of the query's shape.
    allowed: Option<&'q AllowedIndexes>,
    /// The indexes to use, if estimates or a trial chose them among rivals.
    chosen: Option<Chosen>,
    stages: usize,
    /// Whether the documents found are projected already.
    is_covered: bool,
    used: Vec<UsedIndex>,
    /// The candidates of which one is chosen later.
    contenders: Vec<Contender>,
    steps: Steps,
}

impl<'q> Builder<'q> {
    fn number(&mut self) -> StageNumber {
        self.stages += 1;
        StageNumber(self.stages - 1)
    }

    fn root(&mut self) -> Result<Box<dyn DocumentStage>> {
        if self.query.reads_record_ids() && self.collection.is_clustered() {
            // MongoDB derives record ids of a clustered collection from `_id`; here they are numbers.
            let message = if self.query.shows_record_ids {
                "'showRecordId' of a clustered collection is not supported yet"
            } else {
                "$meta: \"recordId\" of a clustered collection is not supported yet"
            };
            return Err(Failure::new(ErrorCode::COMMAND_NOT_SUPPORTED, message));
        }
        let AccessPath { mut stage, order } = self.found()?;
        let query = self.query;
        // A stage that finds at most one document needs no limit, since the limit is never 0.
        let mut limit = query.limit.filter(|_| stage.effort() != Effort::Lookups(1));
        if let (Some(_), Order::Any) = (&query.sort, order) {
            stage = Box::new(Sort { number: self.number(), limit: query.wanted(), input: stage });
            // The sort applies the limit.
            limit = None;
        }
        if query.skip > 0 {
            stage = Box::new(Skip { number: self.number(), count: query.skip, input: stage });
        }
        if query.reads_keys() {
            self.check_keys_can_be_told()?;
        }
        if query.returns_keys {
            stage = Box::new(ReturnKey { number: self.number(), input: stage });
        } else if !query.gives_whole_documents() && !self.is_covered {
            stage = Box::new(ProjectionStage { number: self.number(), input: stage });
        }
        if let Some(limit) = limit {
            stage = Box::new(Limit { number: self.number(), count: limit, input: stage });
        }
        Ok(stage)
    }

    /// # Errors
    /// `CommandNotSupported` for an index whose keys do not hold the values of its fields, or not in MongoDB's form.
    fn check_keys_can_be_told(&self) -> Result<()> {
        let is_readable = |used: &UsedIndex| {
            let index = &used.index;
            index.kind.answers() == Answers::ByField && index.strings == StringOrder::default()
        };
        let Some(used) = self.used.iter().find(|used| !is_readable(used)) else { return Ok(()) };
        let asked = if self.query.returns_keys { "'returnKey'" } else { "$meta: \"indexKey\"" };
        let message = format!("{asked} by keys of the index '{}' is not supported yet", used.index.name);
        Err(Failure::new(ErrorCode::COMMAND_NOT_SUPPORTED, message))
    }

    /// All matching documents, before sort, skip and limit.
    fn found(&mut self) -> Result<AccessPath> {
        let root = self.query.filter.root();
        let strings = &self.query.scope.strings;
        if let Some(bounds) = &self.query.key_bounds {
            return self.bounded_scan(bounds);
        }
        if let Some(text) = self.query.filter.text() {
            return self.text(&Arc::clone(text));
        }
        if is_near(self.query) {
            return self.near();
        }
        if matches!(root, Expression::AlwaysFalse) {
            return Ok(AccessPath { stage: Box::new(Eof { number: self.number() }), order: Order::AsAsked });
        }
        if let Some(sample) = self.sample() {
            return Ok(sample);
        }
        if let Some(hint) = self.hint() {
            return self.hinted_scan(hint);
        }
        if let Some(id) = looked_up_id(root)
            && can_look_up(self.collection, id.as_ref(), strings)
            && !self.query.holds_metadata()
        {
            return Ok(self.express(id));
        }
        let indexes = self.allowed_indexes();
        if let Some(chosen) = self.chosen.and_then(|chosen| self.by_chosen(&indexes, chosen)) {
            return Ok(chosen);
        }
        let best = if self.chosen.is_none() { self.best(self.ranked(&indexes)) } else { None };
        if self.steps.are_used_up() {
            self.contenders.clear();
            return self.last_resort();
        }
        if let Some(distinct) = self.distinct(&indexes, best.as_ref()) {
            self.contenders.clear();
            return Ok(distinct);
        }
        let (narrowing, sorting): (Vec<_>, Vec<_>) = best.into_iter().partition(|best| best.bounds.is_narrowed());
        if let Some(best) = narrowing.into_iter().next() {
            return Ok(self.index_scan(best));
        }
        if let Some((index, spans)) = near_plan::region(&indexes, predicates_of(root), strings) {
            return Ok(self.geo_scan(index, spans));
        }
        let alternatives = self.alternatives(&indexes, predicates_of(root), self.query.sort.as_ref())?;
        if self.steps.are_used_up() {
            return self.last_resort();
        }
        match (alternatives, sorting.into_iter().next()) {
            (Some(alternatives), _) => Ok(self.or_scan(alternatives)),
            (None, Some(sorting)) => Ok(self.index_scan(sorting)),
            (None, None) => self.last_resort(),
        }
    }

    /// The scan between `min` and `max`, which need a hint.
    fn bounded_scan(&mut self, bounds: &KeyBounds) -> Result<AccessPath> {
        let strings = &self.query.scope.strings;
        let index = match &self.query.hint {
            None => return Err(self.planner_error(ErrorCode::NO_QUERY_EXECUTION_PLANS, key_window::NO_HINT)),
            Some(Hint::Natural(_)) => {
                return Err(self.planner_error(ErrorCode::NO_QUERY_EXECUTION_PLANS, key_window::NATURAL_HINT));
            }
            Some(hint) => self.hinted(hint)?,
        };
        match index.kind.answers() {
            Answers::ByField => {}
            // The keys of a wildcard index are not values of the fields that bounds name.
            Answers::ByPath { .. } => return Err(key_window::incompatible(&index)),
            Answers::ByItself => {
                return Err(self.planner_error(ErrorCode::NO_QUERY_EXECUTION_PLANS, "No query solutions"));
            }
        }
        let bounds = IndexBounds::within(&index, KeyWindow::new(&index, bounds, strings)?);
        Ok(self.index_scan(Candidate::of_bounds(bounds, self.query.sort.as_ref(), strings)))
    }

    /// The scan that a hint asks for.
    fn hinted_scan(&mut self, hint: &Hint) -> Result<AccessPath> {
        let (root, strings) = (self.query.filter.root(), &self.query.scope.strings);
        if let Hint::Natural(direction) = hint {
            self.check_scan("hint $natural is not allowed, because 'notablescan' is enabled")?;
            return Ok(self.collection_scan(*direction));
        }
        let index = self.hinted(hint)?;
        if GeoField::is_in(index.document.as_ref()) {
            let spans = near_plan::spans(&index, predicates_of(root)).unwrap_or_else(GeoField::all_keys);
            return Ok(self.geo_scan(index, spans));
        }
        if let Some(distinct) = self.distinct(std::slice::from_ref(&index), None) {
            return Ok(distinct);
        }
        let candidate = Candidate::new(&index, predicates_of(root), self.query.sort.as_ref(), strings);
        // Other indexes are scanned whole if the query has no bounds in them, or asks for documents that a
        // partial index omits. MongoDB refuses this for wildcard indexes, whose keys belong to several paths.
        let is_served = candidate.bounds.is_narrowed() && choose::takes_all(&index, predicates_of(root), strings);
        if matches!(index.kind.answers(), Answers::ByPath { .. }) && !is_served {
            let alternatives = self.alternatives(&[index], predicates_of(root), self.query.sort.as_ref())?;
            if let Some(alternatives) = alternatives {
                return Ok(self.or_scan(alternatives));
            }
            return Err(self.planner_error(ErrorCode::NO_QUERY_EXECUTION_PLANS, "No query solutions"));
        }
        Ok(self.index_scan(candidate))
    }

    /// The collection scan, if no index serves.
    /// # Errors
    /// `NoQueryExecutionPlans` if settings or parameters allow only indexes.
    fn last_resort(&mut self) -> Result<AccessPath> {
        self.check_scan("No indexed solutions available, and running with 'notablescan' 1")?;
        match self.allowed.map(AllowedIndexes::scan) {
            None => Ok(self.collection_scan(Direction::Forward)),
            Some(Some(direction)) => Ok(self.collection_scan(direction)),
            Some(None) => Err(self.planner_error(ErrorCode::NO_QUERY_EXECUTION_PLANS, "No query solutions")),
        }
    }

    /// Refuses to scan the collection if the server is configured so. Queries without conditions and queries on system
    /// collections are exempt.
    fn check_scan(&self, reason: &str) -> Result<()> {
        let namespace = self.collection.namespace();
        if self.query.scope.scans == CollectionScans::Allowed
            || matches!(self.query.filter.root(), Expression::And(children) if children.is_empty())
            || namespace.collection().starts_with("system.")
            || namespace.is_in_server_database()
        {
            return Ok(());
        }
        Err(self.planner_error(ErrorCode::NO_QUERY_EXECUTION_PLANS, reason))
    }

    /// The failure to find an index; if there is a hidden one, the failure that no plan may use it.
    fn of_hidden(&self, failure: Failure, is_of_kind: fn(&Index) -> bool) -> Failure {
        let indexes = self.collection.ready_indexes();
        if indexes.iter().any(|index| index.is_hidden && is_of_kind(index)) {
            return self.planner_error(ErrorCode::NO_QUERY_EXECUTION_PLANS, "No query solutions");
        }
        failure
    }

    /// The query's hint, unless an index filter or settings restrict the indexes.
    fn hint(&self) -> Option<&'q Hint> {
        self.query.hint.as_ref().filter(|_| self.index_filter.is_none() && self.allowed.is_none())
    }

    /// A scan that skips from value to value, if distinct values are wanted and no other index finds their documents
    /// faster.
    fn distinct(&mut self, indexes: &[Arc<Index>], best: Option<&Candidate>) -> Option<AccessPath> {
        let query = self.query;
        let asked = query.distinct.as_ref()?;
        if asked.of != DistinctOf::Elements && query.holds_metadata() {
            return None;
        }
        let predicates = predicates_of(query.filter.root());
        let distinct = distinct_plan::best(indexes, predicates, asked, query.sort.as_ref(), &query.scope.strings)?;
        if best.is_some_and(|best| best.reach() > distinct.candidate.reach()) {
            return None;
        }
        let scan = self.scan(distinct.candidate.bounds, distinct.direction);
        let stage = DistinctScan::new(scan, distinct.position, asked.of);
        // For the last documents the scan goes against the order. It may give several documents of a group, of which the
        // last in the order counts: undefined and null are one group with two keys, for example.
        let order = if asked.of == DistinctOf::FirstOfGroups { Order::AsAsked } else { Order::Any };
        Some(AccessPath { stage: Box::new(stage), order })
    }

    /// The documents of a search by distance.
    fn near(&mut self) -> Result<AccessPath> {
        let indexes = match self.hint() {
            None => self.allowed_indexes(),
            Some(hint) => vec![self.hinted(hint)?],
        };
        let search = near_plan::search(self.query, self.collection, &indexes)
            .map_err(|failure| self.of_hidden(failure, |index| GeoField::is_in(index.document.as_ref())))?;
        let Some((index, field)) = near_plan::index_for(&search, self.query, indexes) else {
            let code = ErrorCode::NO_QUERY_EXECUTION_PLANS;
            return Err(self.planner_error(code, "unable to find index for $geoNear query"));
        };
        let search = match field.surface {
            Surface::Plane(_) => Arc::new(NearSearch { measure: Measure::Chord, ..NearSearch::clone(&search) }),
            Surface::Sphere => search,
        };
        self.note(&index, index.multikey());
        let stage = GeoNear { number: self.number(), index, field, search };
        Ok(AccessPath { stage: Box::new(stage), order: Order::Any })
    }

    fn allowed_indexes(&self) -> Vec<Arc<Index>> {
        let mut indexes = self.usable_indexes();
        if let Some(allowed) = self.allowed {
            indexes.retain(|index| allowed.allows(index));
        } else if let Some(filter) = &self.index_filter {
            indexes.retain(|index| filter.allows(&index.name, index.key_pattern()));
        }
        indexes
    }

    fn hinted(&self, hint: &Hint) -> Result<Arc<Index>> {
        let is_meant = |index: &Arc<Index>| match hint {
            Hint::Name(name) => index.name == *name,
            Hint::KeyPattern(pattern) => order::compare_documents(index.key_pattern(), pattern.as_ref()).is_eq(),
            Hint::Natural(_) => false,
        };
        let index = self.usable_indexes().into_iter().find(is_meant).ok_or_else(|| self.bad_hint())?;
        if index.kind.answers() == Answers::ByItself && !GeoField::is_in(index.document.as_ref()) {
            return Err(self.planner_error(ErrorCode::NO_QUERY_EXECUTION_PLANS, "No query solutions"));
        }
        Ok(index)
    }

    /// The indexes to choose from.
    fn usable_indexes(&self) -> Vec<Arc<Index>> {
        let mut indexes = self.collection.ready_indexes();
        indexes.retain(|index| !index.is_hidden);
        if let Some(among) = &self.query.among {
            indexes.retain(|index| among.iter().any(|usable| Arc::ptr_eq(usable, index)));
        }
        indexes
    }

    fn bad_hint(&self) -> Failure {
        self.planner_error(ErrorCode::BAD_VALUE, "hint provided does not correspond to an existing index")
    }

    fn planner_error(&self, code: ErrorCode, reason: &str) -> Failure {
        let text = |document: DocumentRef<'_>| ValueText(ValueRef::Document(document)).to_string();
        let query = self.query;
        let sort = query.sort.as_ref().map(crate::explain::sort_document).unwrap_or_default();
        let filter = query.filter.part_within(&|_| true, TOLD_BYTES_MAX).unwrap_or_default();
        let message = format!(
            "error processing query: ns={}Tree: {}\nSort: {}\nProj: {}\n planner returned error :: caused by :: {reason}",
            self.collection.namespace(),
            text(filter.as_ref()),
            text(sort.as_ref()),
            text(query.projection_document.as_ref()),
        );
        Failure::new(code, message)
    }
}

/// Maximum number of bytes of a filter in an error message.
const TOLD_BYTES_MAX: usize = 64 << 10;

/// The `_id` that the filter demands, if that is its only condition.
fn looked_up_id(expression: &Expression) -> Option<&Value> {
    match expression {
        Expression::Compare { path, op: Comparison::Eq, value }
            if path.as_str() == "_id" && is_plain_id(value.as_ref()) =>
        {
            Some(value)
        }
        _ => None,
    }
}
