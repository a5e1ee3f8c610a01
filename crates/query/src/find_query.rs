//! The parsed form of a find: the planner's input.

use crate::QueryShape;
use crate::expr_filter::{QueryScope, parse_plan_filter};
use crate::hint::{Hint, natural_direction};
use crate::near::NearAsked;
use crate::scan_start::ScanStart;
use crate::wanted_fields::{including, names_fields_alone};
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, number};
use bunko_catalog::{Index, exact_key};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::projection::{ElementPredicate, ProjectionKind};
use bunko_expression::{Dependencies, Offered, ParseScope, Projection, SortPattern, check_document_bytes, with_path};
use bunko_matcher::{ElemMatch, Filter};
use bunko_store::RecordId;
use std::sync::Arc;

/// Where `showRecordId` puts the record id. Source: MongoDB manual, "cursor.showRecordId()".
const RECORD_ID_FIELD: &str = "$recordId";

/// Name of a record's id in the metadata of its document.
const RECORD_ID: &str = "recordId";

/// Name of a document's sort key in its metadata.
const SORT_KEY: &str = "sortKey";

/// Name of the index key that led to a document in the document's metadata.
pub(crate) const INDEX_KEY: &str = "indexKey";

/// The part of the hinted index to read.
#[derive(Clone, Debug, Default)]
pub struct KeyBounds {
    /// The first key to read, itself included; empty for no lower bound.
    pub min: DocumentBuf,
    /// The first key that is not read; empty for no upper bound.
    pub max: DocumentBuf,
}

/// A request for distinct values.
#[derive(Clone, Debug)]
pub struct Distinct {
    /// The path of the values.
    pub path: Box<str>,
    /// The definition of a document's values.
    pub of: DistinctOf,
    /// The order of the documents with one value, if the query has no sort; only for `FirstOfGroups` and
    /// `FirstWithValue`.
    pub order: Option<SortPattern>,
    /// Number of documents needed of each value, if there are as many; only for these two it may be more than 1.
    pub count: usize,
}

/// Defines the values of a document, and says which of the documents with a value are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DistinctOf {
    /// Each element of an array is a value, and a missing field has none. Only the values are needed.
    Elements,
    /// The whole field is one value, and a missing field counts as null. Only the values are needed.
    Groups,
    /// As `Groups`, and for each value the first documents in the query's sort order are needed too.
    FirstOfGroups,
    /// As `Groups`, and for each value the last document in the query's sort order is needed too.
    LastOfGroups,
    /// As `FirstOfGroups`, but the first documents whose value in the order is not null are needed; if all are null, any of
    /// them. The order has one path.
    FirstWithValue,
    /// As `Groups`, but of the values that are not null only the least is needed.
    Least,
    /// As `Least`, for the greatest value.
    Greatest,
}

/// A parsed find. The command's parser fills it in; the planner only reads it.
pub struct FindQuery {
    /// The condition that documents match.
    pub filter: Filter,
    /// The filter as it was sent.
    pub filter_document: DocumentBuf,
    /// The order of the results; `None` if any order will do.
    pub sort: Option<SortPattern>,
    /// The part of each document to return; `None` for the whole document.
    pub projection: Option<Arc<Projection>>,
    /// The projection as explain shows it; of a find as it was sent.
    pub projection_document: DocumentBuf,
    /// Whether stages of a pipeline read the results. Between stages, documents may be too large for a reply.
    pub feeds_stages: bool,
    /// Whether results include record ids: set by [`Self::show_record_ids`].
    pub shows_record_ids: bool,
    /// Whether results are index keys in place of documents: `returnKey`.
    pub returns_keys: bool,
    /// Number of documents to skip at the start.
    pub skip: u64,
    /// Maximum number of documents to return; `None` for no limit.
    pub limit: Option<u64>,
    /// The index or order that the client asks for.
    pub hint: Option<Hint>,
    /// The only indexes that the plan may use, if these are not all ready ones: a snapshot that was taken earlier knows
    /// only the indexes that were ready then.
    pub among: Option<Arc<[Arc<Index>]>>,
    /// `min` and `max`; `None` if neither is given.
    pub key_bounds: Option<KeyBounds>,
    /// The distance to search by; `None` if the filter holds it, or if the query does not search by distance.
    pub near: Option<NearAsked>,
    /// The start of a scan that reports its position; `None` if the query does not ask for that.
    pub resumed: Option<ScanStart>,
    /// The distinct values asked for. Each value has to be in at least one document that the plan yields; the plan need
    /// not yield all documents that match.
    pub distinct: Option<Distinct>,
    /// Number of documents that a `$sample` right after the query wants. The plan may yield all documents, or a sample
    /// of this size in which each document is as likely as every other.
    pub sampled: Option<u64>,
    /// Whether a stage right after the query asks only for the number of documents.
    pub is_counted: bool,
    /// The dotted paths that the query's caller reads; documents may lack all other fields. `None` if the caller reads
    /// more.
    pub needed: Option<Arc<[Box<str>]>>,
    /// The variables and settings for expressions in filter and projection.
    pub scope: Arc<QueryScope>,
}

impl FindQuery {
    /// A query for all documents that match `filter`, each of them whole.
    /// # Errors
    /// As [`parse_plan_filter`].
    pub fn new(filter: DocumentRef<'_>, scope: Arc<QueryScope>) -> Result<Self> {
        // The query keeps the filter's document beside the parsed filter.
        scope.operation.will_take(filter.len_bytes())?;
        Ok(Self {
            filter_document: filter.to_owned(),
            filter: parse_plan_filter(filter, &scope)?,
            sort: None,
            projection: None,
            projection_document: DocumentBuf::new(),
            feeds_stages: false,
            shows_record_ids: false,
            returns_keys: false,
            skip: 0,
            limit: None,
            hint: None,
            among: None,
            key_bounds: None,
            near: None,
            resumed: None,
            distinct: None,
            sampled: None,
            is_counted: false,
            needed: None,
            scope,
        })
    }

    /// Simplifies the filter, unless the projection asks for the position that it finds.
    pub fn simplify(&mut self) {
        if self.projection.as_ref().is_none_or(|projection| projection.positional_path().is_none()) {
            self.filter.simplify();
        }
    }

    /// Metadata that the filter produces for its documents.
    fn made(&self) -> Offered {
        if self.filter.holds_text() {
            Offered::TEXT
        } else if self.near.is_some() || self.filter.holds_near() {
            Offered::NEAR
        } else {
            Offered::NONE
        }
    }

    /// The scope of expressions that are evaluated on matching documents.
    fn parse_scope(&self) -> ParseScope {
        let offered = self.made().and(Offered::PLAN).and(Offered::SORT_KEY);
        self.scope.parse_scope().offering(offered, &self.scope.at_hand)
    }

    /// Whether documents hold their metadata between the stages of the plan.
    pub(crate) fn holds_metadata(&self) -> bool {
        self.returns_keys
            || self.scope.at_hand.is_wanted() && (self.made() != Offered::NONE || self.reads_what_plans_know())
    }

    /// Whether an expression reads record ids, index keys or sort keys.
    pub fn reads_what_plans_know(&self) -> bool {
        self.scope.at_hand.wants(Offered::PLAN.and(Offered::SORT_KEY))
    }

    /// Whether record ids are read.
    pub(crate) fn reads_record_ids(&self) -> bool {
        self.shows_record_ids || self.scope.at_hand.wants(Offered::RECORD_ID)
    }

    /// Whether index keys are read.
    pub(crate) fn reads_keys(&self) -> bool {
        self.returns_keys || self.scope.at_hand.wants(Offered::INDEX_KEY)
    }

    /// Takes the metadata out of `document`, and adds the record's id, index key and sort key where expressions read
    /// them.
    /// # Errors
    /// As [`SortPattern::key_values`].
    pub(crate) fn release(&self, record: RecordId, document: DocumentRef<'_>) -> Result<DocumentBuf> {
        let at_hand = &self.scope.at_hand;
        let document = at_hand.release(document);
        if at_hand.wants(Offered::RECORD_ID) {
            at_hand.add(RECORD_ID, record.0.cast_signed());
        }
        if at_hand.wants(Offered::INDEX_KEY)
            && let Some(known) = at_hand.current()
            && let Some(key) = known.as_ref().as_ref().get(INDEX_KEY).and_then(ValueRef::as_document)
        {
            at_hand.add(INDEX_KEY, &exact_key(key, document.as_ref()));
        }
        if let Some(sort) = self.sort.as_ref().filter(|_| at_hand.wants(Offered::SORT_KEY)) {
            let values = sort.key_values(document.as_ref(), &self.scope.operation, &self.scope.strings)?;
            at_hand.add(SORT_KEY, &values);
        }
        Ok(document)
    }

    /// The parts of the query that decide its plan.
    pub fn shape(&self) -> QueryShape {
        let sort = self.sort.as_ref().map(crate::explain::sort_document).unwrap_or_default();
        let projection = match &self.needed {
            Some(needed) if self.projection.is_none() => including(needed),
            _ => self.projection_document.clone(),
        };
        QueryShape::of(self.filter_document.as_ref(), sort.as_ref(), projection.as_ref(), DocumentRef::EMPTY)
    }

    /// Sets the sort from `sort`; an empty one means none, and `{$natural: 1}` is a hint.
    /// # Errors
    /// As [`SortPattern::parse`]; `BadValue` for `$natural` with another field or a contrary hint.
    pub fn set_sort(&mut self, sort: DocumentRef<'_>) -> Result<()> {
        if sort.get("$natural").is_some() {
            return self.set_natural_sort(sort);
        }
        self.sort = if sort.is_empty() { None } else { Some(SortPattern::parse_in(sort, &self.parse_scope())?) };
        Ok(())
    }

    fn set_natural_sort(&mut self, sort: DocumentRef<'_>) -> Result<()> {
        if sort.count() > 1 {
            let text = ValueText(ValueRef::Document(sort));
            return Err(Failure::bad_value(format!("Cannot include '$natural' in compound sort: {text}")));
        }
        let direction = natural_direction(sort.get("$natural").unwrap_or(ValueRef::Null))?;
        if !matches!(self.hint, None | Some(Hint::Natural(_))) {
            return Err(Failure::bad_value(
                "Cannot use a $natural sort with a hint other than a $natural hint of the same direction",
            ));
        }
        self.hint = Some(Hint::Natural(direction));
        Ok(())
    }

    /// Sets `min` and `max`; empty documents mean none.
    pub fn set_key_bounds(&mut self, min: DocumentRef<'_>, max: DocumentRef<'_>) {
        let is_given = !min.is_empty() || !max.is_empty();
        self.key_bounds = is_given.then(|| KeyBounds { min: min.to_owned(), max: max.to_owned() });
    }

    /// Adds the record id to the end of each result, as `showRecordId` asks. Call this after the projection is set.
    pub fn show_record_ids(&mut self) {
        self.shows_record_ids = true;
        // Explain shows it as MongoDB does: as a part of the projection.
        self.projection_document.append(RECORD_ID_FIELD, &DocumentBuf::new().with("$meta", "recordId"));
    }

    /// Lets plans drop the fields that the projection drops, if the projection only names fields. Not for readers of
    /// whole documents.
    pub fn needs_only_projected(&mut self) {
        let Some(projection) = self.projection.as_ref().filter(|projection| projection.is_inclusion()) else { return };
        if !names_fields_alone(self.projection_document.as_ref()) {
            return;
        }
        let mut dependencies = Dependencies::default();
        projection.add_dependencies(&mut dependencies);
        if let Dependencies::Fields(fields) = dependencies
            && !fields.is_empty()
        {
            self.needed = Some(fields.into_iter().map(String::into_boxed_str).collect());
        }
    }

    /// The only paths that the query needs, if it needs them as they are stored.
    pub(crate) fn needed_alone(&self) -> Option<&[Box<str>]> {
        let is_of_elements = self.distinct.as_ref().is_some_and(|distinct| distinct.of == DistinctOf::Elements);
        let is_more = self.shows_record_ids || self.returns_keys || self.holds_metadata() || is_of_elements;
        self.needed.as_deref().filter(|_| !is_more)
    }

    /// Whether the query needs only the index keys, and no documents.
    pub(crate) fn needs_keys_alone(&self) -> bool {
        self.returns_keys && !self.shows_record_ids && !self.scope.at_hand.wants(Offered::RECORD_ID)
    }

    /// Whether only the number of documents matters, and not their fields.
    pub(crate) fn needs_no_field(&self) -> bool {
        self.needed.as_ref().is_some_and(|needed| needed.is_empty())
            && self.sort.is_none()
            && self.gives_whole_documents()
            && !self.holds_metadata()
    }

    /// Whether results are the documents as they were found.
    pub(crate) fn gives_whole_documents(&self) -> bool {
        self.projection.is_none() && !self.shows_record_ids && !self.returns_keys
    }

    /// The result for a matching record, built in `buffer`; the document itself if nothing changes.
    /// # Errors
    /// As [`Self::projected`].
    pub(crate) fn given<'d>(
        &self,
        record: RecordId,
        document: DocumentRef<'d>,
        buffer: &'d mut Vec<u8>,
    ) -> Result<DocumentRef<'d>> {
        if self.returns_keys {
            let known = self.scope.at_hand.current();
            let known = known.as_ref().map_or(DocumentRef::EMPTY, |known| known.as_ref().as_ref());
            let key = known.get(INDEX_KEY).and_then(ValueRef::as_document);
            let mut given = exact_key(key.unwrap_or(DocumentRef::EMPTY), document);
            // MongoDB ignores the rest of the projection here.
            for path in self.projection.iter().flat_map(|projection| projection.sort_key_paths()) {
                let path: Vec<Box<str>> = path.split('.').map(Box::from).collect();
                given = with_path(given.as_ref(), &path, known.get(SORT_KEY));
            }
            *buffer = given.into_bytes();
            return Ok(DocumentRef::trusted(buffer));
        }
        if !self.shows_record_ids {
            return self.projected(document, buffer);
        }
        let mut given = self.projected(document, buffer)?.to_owned();
        given.append(RECORD_ID_FIELD, record.0.cast_signed());
        check_document_bytes(given.as_ref().len_bytes())?;
        *buffer = given.into_bytes();
        Ok(DocumentRef::trusted(buffer))
    }

    /// Applies the projection to a matching document, in `buffer`; returns the document itself if there is no
    /// projection.
    /// # Errors
    /// Errors of the projection's expressions.
    pub fn projected<'d>(&self, document: DocumentRef<'d>, buffer: &'d mut Vec<u8>) -> Result<DocumentRef<'d>> {
        let Some(projection) = &self.projection else { return Ok(document) };
        let matched = match projection.positional_path() {
            Some(_) => self.filter.matches_with_position(document)?.and_then(|position| position.index),
            None => None,
        };
        buffer.clear();
        projection.apply(&self.scope.context(document), matched, buffer)?;
        if !self.feeds_stages {
            check_document_bytes(buffer.len())?;
        }
        Ok(DocumentRef::trusted(buffer))
    }

    /// Sets the projection from `projection`; an empty one means none.
    /// # Errors
    /// As [`Projection::parse`].
    pub fn set_projection(&mut self, projection: DocumentRef<'_>) -> Result<()> {
        if projection.is_empty() {
            return Ok(());
        }
        let scope = Arc::clone(&self.scope);
        scope.operation.will_take(projection.len_bytes())?;
        let compile_element = move |condition: DocumentRef<'_>| -> Result<Arc<dyn ElementPredicate>> {
            Ok(Arc::new(Element(ElemMatch::parse(condition, &scope.strings, &scope.operation)?)))
        };
        let kind = ProjectionKind::Find(&compile_element);
        self.projection = Some(Arc::new(Projection::parse(projection, kind, &self.parse_scope())?));
        self.scope.constant_failure.check("Failed to optimize projection")?;
        if self.scope.at_hand.wants(Offered::SORT_KEY) {
            self.check_sort_key()?;
        }
        let is_positional = self.projection.as_ref().is_some_and(|parsed| parsed.positional_path().is_some());
        if is_positional && self.filter.holds_expr() {
            let message = "$expr is not allowed in the query of a positional projection";
            return Err(Failure::new(ErrorCode::QUERY_FEATURE_NOT_ALLOWED, message));
        }
        self.projection_document = projection.to_owned();
        Ok(())
    }

    /// # Errors
    /// `BadValue` without a sort; `CommandNotSupported` for a sort by metadata.
    fn check_sort_key(&self) -> Result<()> {
        match &self.sort {
            None => Err(Failure::bad_value("cannot use sortKey $meta projection without a sort")),
            Some(sort) if sort.reads_metadata() => {
                let message = "$meta: \"sortKey\" is not supported yet together with a sort by $meta";
                Err(Failure::new(ErrorCode::COMMAND_NOT_SUPPORTED, message))
            }
            Some(_) => Ok(()),
        }
    }

    /// Whether every document matches.
    pub(crate) fn has_no_filter(&self) -> bool {
        self.filter.root().is_empty()
    }

    /// Number of documents that satisfies skip and limit together.
    pub(crate) fn wanted(&self) -> Option<u64> {
        self.limit.map(|limit| limit.saturating_add(self.skip))
    }
}

struct Element(ElemMatch);

impl ElementPredicate for Element {
    fn matches(&self, element: ValueRef<'_>) -> bool {
        self.0.matches(element)
    }
}

/// Reads a field such as `skip` or `limit`; fractions are truncated.
/// # Errors
/// `TypeMismatch` if it is not a number, `BadValue` if it is negative.
pub fn parse_count(field: &str, value: ValueRef<'_>) -> Result<u64> {
    let Some(count) = number::clamp_to_i64(value) else {
        return Err(Failure::wrong_type(field, value, "types '[long, int, decimal, double]'"));
    };
    u64::try_from(count)
        .map_err(|_| Failure::bad_value(format!("BSON field '{field}' value must be >= 0, actual value '{count}'")))
}

/// Reads `limit`, in which 0 means none.
/// # Errors
/// As [`parse_count`].
pub fn parse_limit(value: ValueRef<'_>) -> Result<Option<u64>> {
    Ok(Some(parse_count("limit", value)?).filter(|limit| *limit > 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_errors::ErrorCode;
    use bunko_store::Direction;

    fn query() -> FindQuery {
        let scope = QueryScope::new(0, bunko_operation::OperationContext::unlimited());
        FindQuery::new(DocumentRef::EMPTY, Arc::new(scope)).expect("a filter")
    }

    #[test]
    fn natural_order_is_a_hint() {
        let mut find = query();
        find.set_sort(DocumentBuf::new().with("$natural", -1.0).as_ref()).expect("a sort");
        assert!(matches!(find.hint, Some(Hint::Natural(Direction::Backward))) && find.sort.is_none());
        assert!(find.set_sort(DocumentBuf::new().with("$natural", 1).with("a", 1).as_ref()).is_err());
        assert!(find.set_sort(DocumentBuf::new().with("$natural", 2).as_ref()).is_err());
        find.hint = Some(Hint::Name("a_1".into()));
        assert!(find.set_sort(DocumentBuf::new().with("$natural", 1).as_ref()).is_err());
        find.set_sort(DocumentRef::EMPTY).expect("no sort");
        assert!(find.sort.is_none());
    }

    #[test]
    fn counts_are_numbers_from_zero() {
        assert_eq!(parse_count("skip", ValueRef::Double(2.9)).expect("a number"), 2);
        assert_eq!(parse_count("skip", ValueRef::Int64(-1)).expect_err("negative").code(), ErrorCode::BAD_VALUE);
        assert_eq!(parse_count("skip", ValueRef::Null).expect_err("null").code(), ErrorCode::TYPE_MISMATCH);
        assert_eq!(parse_limit(ValueRef::Int32(0)).expect("a number"), None);
    }
}
