//! From a filter to locked records.

use super::report::LastSearch;
use super::{Writes, version_document};
use crate::find_query::FindQuery;
use crate::hint::Hint;
use crate::id_lookup::{can_look_up, id_lookup, is_plain_id};
use crate::{Execution, QueryScope, plan};
use bunko_bson::{DocumentBuf, DocumentRef, StringOrder, ValueRef};
use bunko_catalog::{Collection, Target, Verdict};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_matcher::{Comparison, Condition, Expression, Filter, MatchedPosition};
use bunko_store::{Location, RecordId};
use bunko_update::Targets;
use std::sync::Arc;

/// Number of searches by a statement for one document whose candidates other clients keep changing.
const SEARCHES_MAX: usize = 1000;

/// The documents that a statement targets.
pub(super) struct Wanted<'a> {
    by: By<'a>,
    /// The filter as the client wrote it, if the query has it simplified: an update may use the array position that it
    /// finds, and an upsert its equalities.
    exact: Option<Box<Filter>>,
    operation: Operation,
    strings: StringOrder,
}

enum By<'a> {
    /// `{_id: value}` alone.
    Id(ValueRef<'a>),
    /// Anything else.
    Query(Arc<FindQuery>),
}

/// The choice among matching records, and how to find them.
pub(super) struct Choice<'a> {
    /// The order that decides which record is the first.
    pub sort: Option<DocumentRef<'a>>,
    pub hint: Option<Hint>,
}

/// The operation, for the prefix that MongoDB puts before failures at documents.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Update,
    Delete,
    FindAndModify,
}

impl Operation {
    fn failed(self, failure: Failure) -> Failure {
        match self {
            Self::Update => failure.with_prefix("Plan executor error during update :: caused by :: "),
            Self::FindAndModify => failure.with_prefix("Plan executor error during findAndModify :: caused by :: "),
            Self::Delete => failure,
        }
    }
}

/// Counts of a statement's changes.
#[derive(Clone, Copy, Default)]
pub(super) struct Changes {
    pub matched: u64,
    pub changed: u64,
}

impl Changes {
    /// The counts for one record.
    pub(super) fn of(sighting: Sighting) -> Self {
        match sighting {
            Sighting::Gone | Sighting::Unmatched => Self::default(),
            Sighting::Kept => Self { matched: 1, changed: 0 },
            Sighting::Changed => Self { matched: 1, changed: 1 },
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.matched += other.matched;
        self.changed += other.changed;
    }
}

/// The state of a record after it was locked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sighting {
    /// Deleted since the search.
    Gone,
    /// Changed since the search, and no longer matches the filter.
    Unmatched,
    /// The record matches and stays as it is.
    Kept,
    Changed,
}

/// Judges a matching document; the second argument is the array position that matched.
pub(super) type Decision<'d> = dyn FnMut(DocumentRef<'_>, Option<usize>) -> Result<Verdict> + 'd;

impl<'a> Wanted<'a> {
    pub(super) fn parse(
        filter: DocumentRef<'a>,
        choice: Choice<'_>,
        operation: Operation,
        scope: &Arc<QueryScope>,
    ) -> Result<Self> {
        let strings = scope.strings.clone();
        if let Some(id) = id_lookup(filter).filter(|_| choice.hint.is_none() && choice.sort.is_none()) {
            return Ok(Self { by: By::Id(id), exact: None, operation, strings });
        }
        let mut query = Self::query(filter, choice, scope)?;
        // Each alternative of a text search needs an index, which it may have once it is simplified. Other updates keep their
        // filter, so that it need not be copied.
        let exact =
            (operation != Operation::Delete && query.filter.holds_text()).then(|| Box::new(query.filter.clone()));
        if operation == Operation::Delete || exact.is_some() {
            query.simplify();
        }
        Ok(Self { by: By::Query(Arc::new(query)), exact, operation, strings })
    }

    /// Targets the documents that this query finds.
    pub(super) fn of_query(query: FindQuery, operation: Operation) -> Self {
        let strings = query.scope.strings.clone();
        Self { by: By::Query(Arc::new(query)), exact: None, operation, strings }
    }

    /// The whole filter; `None` for an `_id` alone.
    pub(super) fn filter(&self) -> Option<&Filter> {
        match &self.by {
            By::Id(_) => None,
            By::Query(query) => Some(self.exact(query)),
        }
    }

    /// The filter as the client wrote it.
    fn exact<'w>(&'w self, query: &'w FindQuery) -> &'w Filter {
        self.exact.as_deref().unwrap_or(&query.filter)
    }

    /// The query for a statement's target documents.
    pub(super) fn query(filter: DocumentRef<'_>, choice: Choice<'_>, scope: &Arc<QueryScope>) -> Result<FindQuery> {
        let mut query = FindQuery::new(filter, Arc::clone(scope))?;
        query.hint = choice.hint;
        if let Some(sort) = choice.sort {
            query.set_sort(sort)?;
        }
        if query.sort.is_some() {
            // A sort need only remember the first document. If another client takes it, the next search finds the new
            // first one.
            query.limit = Some(1);
        }
        Ok(query)
    }

    /// The filter's equalities by path; empty if the filter asks for anything else.
    pub(super) fn equalities(&self) -> Vec<(&str, ValueRef<'_>)> {
        let query = match &self.by {
            By::Id(id) => return vec![("_id", *id)],
            By::Query(query) => query,
        };
        let equalities: Option<Vec<_>> = self.exact(query).root().conjuncts().iter().map(equality).collect();
        equalities.unwrap_or_default()
    }

    /// The `_id` that the filter demands, if the `_id` index can look it up.
    fn id(&self, collection: &Collection) -> Option<ValueRef<'_>> {
        self.only_id().filter(|id| can_look_up(collection, *id, &self.strings))
    }

    fn only_id(&self) -> Option<ValueRef<'_>> {
        let query = match &self.by {
            By::Id(id) => return Some(*id),
            By::Query(query) if query.hint.is_some() => return None,
            By::Query(query) => query,
        };
        let of_id = |part| equality(part).filter(|(path, value)| *path == "_id" && is_plain_id(*value));
        query.filter.root().conjuncts().iter().find_map(of_id).map(|(_, value)| value)
    }

    /// Prefixes a failure during execution with MongoDB's words.
    pub(super) fn executed<T>(&self, outcome: Result<T>) -> Result<T> {
        outcome.map_err(|failure| self.operation.failed(failure))
    }

    /// Whether a document matches, and at which array position.
    fn matches(&self, document: DocumentRef<'_>) -> Result<Option<MatchedPosition>> {
        match &self.by {
            // A record's `_id` never changes, so it still matches.
            By::Id(_) => Ok(Some(MatchedPosition { index: None })),
            By::Query(query) => self.exact(query).matches_with_position(document),
        }
    }

    /// Whether this deletes all that it finds, so that another search finds the rest.
    pub(super) fn deletes_all(&self) -> bool {
        let is_limited = matches!(&self.by, By::Query(query) if query.limit.is_some());
        self.operation == Operation::Delete && !is_limited
    }

    /// Judges a locked record: its state, and the change to make.
    pub(super) fn judge(&self, document: DocumentRef<'_>, decide: &mut Decision<'_>) -> Result<(Sighting, Verdict)> {
        let Some(position) = self.matches(document)? else { return Ok((Sighting::Unmatched, Verdict::Keep)) };
        let verdict = decide(document, position.index)?;
        let sighting = if matches!(verdict, Verdict::Keep) { Sighting::Kept } else { Sighting::Changed };
        Ok((sighting, verdict))
    }
}

fn equality(expression: &Expression) -> Option<(&str, ValueRef<'_>)> {
    let Expression::OnPath(path, condition) = expression else { return None };
    let value = match condition {
        Condition::Compare(Comparison::Eq, value) => value,
        // `$in` with a single value is an equality.
        Condition::In { values, regexes } if regexes.is_empty() && values.len() == 1 => &values[0],
        _ => return None,
    };
    Some((path.as_str(), value.as_ref()))
}

/// Records that matched when the search began.
pub(super) enum Search {
    One(Option<RecordId>),
    Plan(Box<Execution>),
}

/// A record that a search found.
pub(super) struct FoundRecord {
    record: RecordId,
    /// The location of its document, if the search knows it.
    location: Option<Location>,
}

impl Search {
    /// The next record. Copies its document into `document` if its location is known.
    pub(super) fn next(&mut self, document: &mut Vec<u8>) -> Result<Option<FoundRecord>> {
        match self {
            Self::One(record) => Ok(record.take().map(|record| FoundRecord { record, location: None })),
            Self::Plan(execution) => {
                document.clear();
                let found = execution.next_record()?.map(|(record, found)| {
                    document.extend_from_slice(found.as_bytes());
                    record
                });
                Ok(found.map(|record| FoundRecord { record, location: execution.place_of(record) }))
            }
        }
    }
}

/// Whether an attempt changed nothing, as it does if its collection is dropped first.
fn is_overtaken(attempt: &Result<Option<Changes>>) -> bool {
    match attempt {
        Ok(changes) => changes.is_none_or(|changes| changes.matched == 0),
        Err(failure) => failure.code() == ErrorCode::QUERY_PLAN_KILLED,
    }
}

impl Writes<'_> {
    /// Lets `decide` judge the newest version of every record that matches, or of the first one.
    ///
    /// The search reads one snapshot. So it meets a record only once even if the statement moves that record along the
    /// index being walked (the "Halloween problem"), and it never meets documents inserted meanwhile.
    ///
    /// `decide` may be called twice for a record; the last answer counts.
    pub(super) fn change_matching(
        &mut self,
        wanted: &Wanted<'_>,
        targets: Targets,
        decide: &mut Decision<'_>,
    ) -> Result<Changes> {
        let written = self.written;
        for _ in 0..SEARCHES_MAX {
            let Some(collection) = self.catalog.collection_for(self.namespace, &*self.scope.operation) else {
                self.catalog.refuse_view(self.namespace)?;
                return Ok(Changes::default());
            };
            let attempt = self.change_matching_in(&collection, wanted, targets, decide);
            if self.written == written && collection.is_dropped() && is_overtaken(&attempt) {
                // The dropped collection is unchanged. Another collection may have its name by now.
                self.check_interrupt()?;
                continue;
            }
            if let Some(changes) = attempt? {
                return Ok(changes);
            }
        }
        Err(Failure::new(
            ErrorCode::WRITE_CONFLICT,
            format!("{SEARCHES_MAX} searches found only documents that others changed at the same time"),
        ))
    }

    /// Searches once. Returns `None` if other clients changed all candidates first.
    fn change_matching_in(
        &mut self,
        collection: &Arc<Collection>,
        wanted: &Wanted<'_>,
        targets: Targets,
        decide: &mut Decision<'_>,
    ) -> Result<Option<Changes>> {
        let mut search = Self::search(wanted, collection, &self.scope)?;
        let is_found = matches!(search, Search::One(Some(_)));
        let changed = if targets == Targets::Many {
            // A statement for all documents is complete after one search, whatever other clients did meanwhile.
            let changed = self.change_found((collection, wanted), &mut search, u64::MAX, decide);
            changed.map(|(changes, _)| Some(changes))
        } else {
            self.change_first((collection, wanted), &mut search, decide)
        };
        self.last_search = Some(match search {
            Search::One(_) => LastSearch::ById {
                collection: Arc::clone(collection),
                is_found,
                is_filter: matches!(wanted.by, By::Id(_)),
            },
            Search::Plan(execution) => LastSearch::Planned(execution),
        });
        changed
    }

    /// Changes the first document that the search finds and that still matches. Returns `None` if other clients changed
    /// the candidates first, so that another search may find a match.
    fn change_first(
        &mut self,
        (collection, wanted): (&Collection, &Wanted<'_>),
        search: &mut Search,
        decide: &mut Decision<'_>,
    ) -> Result<Option<Changes>> {
        let (mut document, mut was_overtaken) = (Vec::new(), false);
        while let Some(found) = search.next(&mut document)? {
            self.check_interrupt()?;
            let found = (found.record, found.location, document.as_slice());
            let sighting = wanted.executed(self.change_one(collection, found, wanted, decide))?;
            let changes = Changes::of(sighting);
            if changes.matched > 0 {
                return Ok(Some(changes));
            }
            // A search by `_id` judges the newest version, so a mismatch is final.
            was_overtaken |= sighting == Sighting::Gone || matches!(search, Search::Plan(_));
        }
        // A statement for one document must not end without it only because other clients changed the candidates first.
        Ok((!was_overtaken).then(Changes::default))
    }

    pub(super) fn search(wanted: &Wanted<'_>, collection: &Arc<Collection>, scope: &Arc<QueryScope>) -> Result<Search> {
        if let Some(id) = wanted.id(collection) {
            return Ok(Search::One(collection.record_of_id(id, &*scope.operation)?));
        }
        let query = match &wanted.by {
            By::Query(query) => Arc::clone(query),
            // The `_id` index uses another string order.
            By::Id(id) => {
                let filter = DocumentBuf::new().with("_id", *id);
                Arc::new(FindQuery::new(filter.as_ref(), Arc::clone(scope))?)
            }
        };
        let execution = plan(collection, query)?.open()?;
        Ok(Search::Plan(Box::new(execution)))
    }

    pub(super) fn change_one(
        &mut self,
        collection: &Collection,
        (record, location, document): (RecordId, Option<Location>, &[u8]),
        wanted: &Wanted<'_>,
        decide: &mut Decision<'_>,
    ) -> Result<Sighting> {
        let mut sighting = Sighting::Gone;
        let target = match (wanted.id(collection), location) {
            (Some(id), _) => Target::Id(record, id),
            (None, Some(location)) => Target::Found(record, location, document),
            (None, None) => Target::Record(record),
        };
        let (scope, has_version) = (Arc::clone(&self.scope), self.has_version);
        let lsn = self.catalog.change(collection, target, &*scope.operation, &mut |document| {
            let (own, verdict) = wanted.judge(document, decide)?;
            if has_version {
                version_document::check(document, &verdict)?;
            }
            sighting = own;
            Ok(verdict)
        })?;
        self.note_written(lsn);
        // The record was judged, unlocked to take more locks, and deleted before the locks were taken.
        Ok(if sighting == Sighting::Changed && lsn.is_none() { Sighting::Gone } else { sighting })
    }
}
