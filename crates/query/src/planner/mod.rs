//! Plans queries by rules. Where these leave a choice between indexes, `contest` decides it.
//!
//! `{_id: value}` is looked up. Otherwise the plan scans the best index by [`choose`]'s rules, or one index for each
//! branch of an `$or`, or the whole collection. The filter is evaluated after the fetch unless the keys alone decide
//! it.

mod asked_paths;
mod branch_scan;
mod by_path;
mod candidates;
mod choose;
mod collated;
mod contenders;
mod covered_plan;
mod distinct_plan;
mod elements;
mod geo_bounds;
mod index_bounds;
mod intervals;
mod key_check;
mod key_ranges;
mod key_window;
mod near_plan;
mod or_plan;
mod positions;
mod predicates;
mod rejection;
mod room;
mod scans;
mod sort_order;
mod steps;
mod text_plan;
mod text_suffix;
mod whole_scan;

pub(crate) use branch_scan::BranchScan;
pub(crate) use geo_bounds::with_numbers;
pub(crate) use index_bounds::{IndexBounds, names_array_index};
pub(crate) use intervals::{Edge, IntervalRef, Intervals};
pub(crate) use key_check::{KEYS_BEFORE_SEEK, KeyCheck, Outside};
pub(crate) use key_ranges::{KeyRanges, RangeRef};
pub(crate) use key_window::KeyWindow;
use near_plan::is_near;
pub(crate) use or_plan::OrBounds;
pub(crate) use rejection::{has_too_many_scans_to_merge, rejections};
pub(crate) use sort_order::Order;
pub(crate) use text_suffix::TextSuffix;

use crate::AllowedIndexes;
use crate::effort::Effort;
use crate::expr_filter::CollectionScans;
use crate::find_query::{DistinctOf, FindQuery, KeyBounds};
use crate::hint::Hint;
use crate::id_lookup::{can_look_up, is_plain_id};
use crate::plan::{Asked, Chosen, Contender, Parts, Plan, UsedIndex};
use crate::stages::{DistinctScan, DocumentStage, Eof, Limit, ProjectionStage, ReturnKey, Skip, Sort, StageNumber};
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentRef, StringOrder, Value, ValueRef, order};
use bunko_catalog::{Answers, Collection, GeoField, Index, IndexFilter};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_matcher::{Comparison, Condition, Expression};
use bunko_store::Direction;
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

/// Plans the query by these indexes; `None` if they do not serve it.
/// # Errors
/// As [`plan`].
pub(crate) fn plan_by(collection: &Arc<Collection>, query: &Arc<FindQuery>, asked: Asked<'_>) -> Result<Option<Plan>> {
    let plan = build(collection, query, Some(asked))?;
    Ok((plan.chosen() == Some(asked.chosen)).then_some(plan))
}

fn build(collection: &Arc<Collection>, query: &Arc<FindQuery>, chosen: Option<Asked<'_>>) -> Result<Plan> {
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
    chosen: Option<Asked<'_>>,
    allowed: Option<&AllowedIndexes>,
) -> Result<Plan> {
    let operation = &query.scope.operation;
    let filter_bytes = query.filter_document.as_ref().len_bytes();
    let is_large = filter_bytes > LARGE_FILTER_BYTES;
    if is_large {
        operation.will_take(room::of_plan(query.filter.root(), &query.scope.strings))?;
    }
    // Settings override index filters.
    let index_filter = if allowed.is_none() { index_filter(collection, query) } else { None };
    let is_filtered = index_filter.is_some();
    let (used, contenders) = (Vec::new(), Vec::new());
    let (stages, is_covered, made, steps) = (0, false, None, Steps::new(operation, filter_bytes));
    let mut builder =
        Builder { collection, query, index_filter, allowed, chosen, stages, is_covered, used, made, contenders, steps };
    let root = builder.root();
    builder.steps.check()?;
    let root = root?;
    if is_large {
        operation.check()?;
    }
    let Builder { stages, used, made, contenders, steps, .. } = builder;
    let (collection, query) = (Arc::clone(collection), Arc::clone(query));
    let (is_stopped, steps) = (steps.have_stopped(), steps.taken());
    Ok(Plan::new(Parts {
        collection,
        query,
        root,
        stages,
        used,
        chosen: made,
        contenders,
        is_filtered,
        is_stopped,
        steps,
    }))
}

/// The index filter for queries of this shape, if an administrator set one.
fn index_filter(collection: &Collection, query: &FindQuery) -> Option<Arc<IndexFilter>> {
    let filters = collection.index_filters();
    if filters.is_empty() {
        return None;
    }
    filters.get(query.shape().as_bytes()).cloned()
}

/// A stage that yields documents, and whether they come in the query's order.
struct AccessPath {
    stage: Box<dyn DocumentStage>,
    order: Order,
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
    chosen: Option<Asked<'q>>,
    stages: usize,
    /// Whether the documents found are projected already.
    is_covered: bool,
    used: Vec<UsedIndex>,
    /// The choice that the plan is, if others may be chosen instead.
    made: Option<Chosen>,
    /// The candidates of which one is chosen later.
    contenders: Vec<Contender>,
    steps: Steps<'q>,
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
        if let Some(known) = self.sample().or_else(|| self.stored_count()) {
            return Ok(known);
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
        if let Some(chosen) = self.chosen {
            // A plan that is not the chosen one is dropped.
            let nothing = |builder: &mut Self| AccessPath {
                stage: Box::new(Eof { number: builder.number() }),
                order: Order::Any,
            };
            return Ok(self.by_chosen(&indexes, chosen)?.unwrap_or_else(|| nothing(self)));
        }
        let best = self.best(self.ranked(&indexes));
        if self.steps.are_used_up() {
            self.contenders.clear();
            return match best {
                Some(best) => Ok(self.index_scan(best)),
                None => self.last_resort(),
            };
        }
        if let Some(distinct) = self.distinct(&indexes, best.as_ref()) {
            self.contenders.clear();
            return Ok(distinct);
        }
        let union = self.union_before(&indexes, best.as_ref())?;
        let region = self.region_before(&indexes, best.as_ref(), union.as_ref());
        if self.steps.are_used_up() {
            self.contenders.clear();
        }
        if let Some(region) = region {
            return Ok(self.geo_scan(region));
        }
        match (union, best) {
            (Some((chosen, union)), _) => Ok(self.or_scan(Arc::unwrap_or_clone(union), Some(chosen))),
            (None, Some(best)) => Ok(self.index_scan(best)),
            (None, None) => match self.skipping(&indexes)? {
                Some(skipping) => Ok(self.index_scan(skipping)),
                None => self.last_resort(),
            },
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
            let is_planned = self.steps.take(&index, root.conjuncts());
            let asked = is_planned.then(|| near_plan::scan_of_region(&index, root.conjuncts(), strings)).flatten();
            let whole = || BranchScan::Region(Arc::clone(&index), GeoField::all_keys());
            return Ok(self.geo_scan(asked.unwrap_or_else(whole)));
        }
        if let Some(distinct) = self.distinct(std::slice::from_ref(&index), None) {
            return Ok(distinct);
        }
        if !self.steps.take(&index, root.conjuncts()) {
            return self.whole_index(&index);
        }
        let candidate = Candidate::new(&index, root.conjuncts(), self.query.sort.as_ref(), strings);
        // Other indexes are scanned whole if the query has no bounds in them, or asks for documents that a
        // partial index omits. MongoDB refuses this for wildcard indexes, whose keys belong to several paths.
        let is_served = candidate.bounds.is_narrowed() && choose::takes_all(&index, root.conjuncts(), strings);
        if matches!(index.kind.answers(), Answers::ByPath { .. }) && !is_served {
            let only = std::slice::from_ref(&index);
            let alternatives = self.alternatives(only, root.conjuncts(), self.query.sort.as_ref())?;
            if let Some(alternatives) = alternatives {
                return Ok(self.or_scan(alternatives, None));
            }
            if self.steps.are_used_up() {
                return self.whole_index(&index);
            }
            return Err(self.planner_error(ErrorCode::NO_QUERY_EXECUTION_PLANS, "No query solutions"));
        }
        Ok(self.index_scan(candidate))
    }

    /// The scan of a hinted index without bounds, once the steps of planning are used up. An index that holds the values
    /// of many paths has no keys of some documents, so the collection is scanned instead.
    fn whole_index(&mut self, index: &Arc<Index>) -> Result<AccessPath> {
        if matches!(index.kind.answers(), Answers::ByPath { .. }) {
            return self.last_resort();
        }
        let (sort, strings) = (self.query.sort.as_ref(), &self.query.scope.strings);
        Ok(self.index_scan(Candidate::of_bounds(IndexBounds::full(index), sort, strings)))
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
            || self.query.filter.root().is_empty()
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
        let predicates = query.filter.root().conjuncts();
        let asked_in_order = distinct_plan::Asked { distinct: asked, sort: query.sort.as_ref() };
        let strings = &query.scope.strings;
        let distinct = distinct_plan::best(indexes, predicates, asked_in_order, strings, &self.steps)?;
        if best.is_some_and(|best| best.reach() > distinct.candidate.reach()) {
            return None;
        }
        let scan = self.scan(distinct.candidate.bounds, distinct.direction);
        let stage = DistinctScan::new(scan, (distinct.position, distinct.valued), asked);
        // For the last documents the scan goes against the order. It may give several documents of a group, of which the
        // last in the order counts: undefined and null are one group with two keys, for example.
        let order = if asked.of == DistinctOf::FirstOfGroups { Order::AsAsked } else { Order::Any };
        Some(AccessPath { stage: Box::new(stage), order })
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
        Expression::OnPath(path, Condition::Compare(Comparison::Eq, value))
            if path.as_str() == "_id" && is_plain_id(value.as_ref()) =>
        {
            Some(value)
        }
        _ => None,
    }
}
