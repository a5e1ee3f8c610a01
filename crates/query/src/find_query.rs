//! What a find asks for, parsed: the planner's input.

use crate::QueryShape;
use crate::expr_filter::{QueryScope, parse_plan_filter};
use crate::near::NearAsked;
use crate::resumable::ScanStart;
use crate::stages::names_fields_alone;
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, number};
use bunko_catalog::{Index, exact_key};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::projection::{ElementPredicate, ProjectionKind};
use bunko_expression::{Dependencies, Offered, ParseScope, Projection, SortPattern, check_document_bytes, with_path};
use bunko_matcher::{ElemMatch, Filter};
use bunko_store::{Direction, RecordId};
use std::sync::Arc;

/// Where `showRecordId` puts the record id. Source: MongoDB manual, "cursor.showRecordId()".
const RECORD_ID_FIELD: &str = "$recordId";

/// Under which name a record's id is known beside its document.
const RECORD_ID: &str = "recordId";

/// The same of the values that it was sorted by.
const SORT_KEY: &str = "sortKey";

/// Under which name the key that led to a document is kept with it.
pub(crate) const INDEX_KEY: &str = "indexKey";

/// The index, or the order, that a query is told to use.
#[derive(Clone, Debug)]
pub enum Hint {
    /// The index of that name.
    Name(String),
    /// The index with exactly that key pattern.
    KeyPattern(DocumentBuf),
    /// No index: a scan of the collection in that direction.
    Natural(Direction),
}

impl Hint {
    /// Reads `hint`; an empty document is none.
    /// # Errors
    /// `FailedToParse` for another type than string or document, `BadValue` for a bad `$natural`.
    pub fn parse(value: ValueRef<'_>) -> Result<Option<Self>> {
        match value {
            ValueRef::String(name) => Ok(Some(Self::Name(name.to_owned()))),
            ValueRef::Document(pattern) => match pattern.first() {
                None => Ok(None),
                Some(first) if first.name == "$natural" && pattern.count() > 1 => {
                    Err(Failure::bad_value("$natural hint cannot be combined with other fields"))
                }
                Some(first) if first.name == "$natural" => Ok(Some(Self::Natural(natural_direction(first.value)?))),
                Some(_) => Ok(Some(Self::KeyPattern(pattern.to_owned()))),
            },
            _ => Err(Failure::failed_to_parse("Hint must be a string or an object")),
        }
    }
}

fn natural_direction(value: ValueRef<'_>) -> Result<Direction> {
    match number::as_i64_exact(value) {
        Some(1) => Ok(Direction::Forward),
        Some(-1) => Ok(Direction::Backward),
        _ => Err(Failure::bad_value("$natural sort cannot be set to a value other than -1 or 1.")),
    }
}

/// Which part of the hinted index to read.
#[derive(Clone, Debug, Default)]
pub struct KeyBounds {
    /// Keys from this one on; empty for all.
    pub min: DocumentBuf,
    /// Keys before this one; empty for all.
    pub max: DocumentBuf,
}

/// Distinct values that are asked for.
#[derive(Clone, Debug)]
pub struct Distinct {
    /// Where they are.
    pub path: Box<str>,
    /// What they are.
    pub of: DistinctOf,
}

/// What counts as a value of a document, and what is needed of the documents that have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DistinctOf {
    /// The elements of an array one by one, and nothing of a missing field; no more than the values.
    Elements,
    /// The value as a whole, a missing field as a null; no more than the values.
    Groups,
    /// The same, and of each the first document in the order that the query asks for.
    FirstOfGroups,
}

/// A find, parsed. Whoever parses the command fills it in; the planner only reads it.
pub struct FindQuery {
    /// Which documents.
    pub filter: Filter,
    /// The filter as it was sent.
    pub filter_document: DocumentBuf,
    /// In which order; none for whatever order the plan yields.
    pub sort: Option<SortPattern>,
    /// What of each document; none for all.
    pub projection: Option<Projection>,
    /// The projection as it was sent, for explain.
    pub projection_document: DocumentBuf,
    /// Whether documents are given with their record ids: set by [`Self::show_record_ids`].
    pub shows_record_ids: bool,
    /// Whether the keys that led to documents are given instead of these: `returnKey`.
    pub returns_keys: bool,
    /// How many of the first documents to leave out.
    pub skip: u64,
    /// How many documents at most; none for all.
    pub limit: Option<u64>,
    /// What to use.
    pub hint: Option<Hint>,
    /// The indexes that may be used, where they must not be all that are ready: a snapshot that was taken earlier knows
    /// only those that were ready then.
    pub among: Option<Arc<[Arc<Index>]>>,
    /// `min` and `max`; none where neither is given.
    pub key_bounds: Option<KeyBounds>,
    /// By which distance; none where the filter says it, or none is asked for.
    pub near: Option<NearAsked>,
    /// Where a scan begins that tells how far it has come; none where that is not asked for.
    pub resumed: Option<ScanStart>,
    /// The distinct values that are asked for: each has to be in some of the documents that the plan yields, which need not
    /// be all that match.
    pub distinct: Option<Distinct>,
    /// The dotted paths that whoever reads the documents looks at; none where it is more than these. Documents may lack all
    /// others.
    pub needed: Option<Arc<[Box<str>]>>,
    /// What expressions in filter and projection see.
    pub scope: Arc<QueryScope>,
}

impl FindQuery {
    /// A query for the documents that match `filter`, all of them and whole.
    /// # Errors
    /// As [`parse_plan_filter`].
    pub fn new(filter: DocumentRef<'_>, scope: Arc<QueryScope>) -> Result<Self> {
        // It is kept as it was written, besides what it is parsed into.
        scope.operation.will_take(filter.len_bytes())?;
        Ok(Self {
            filter_document: filter.to_owned(),
            filter: parse_plan_filter(filter, &scope)?,
            sort: None,
            projection: None,
            projection_document: DocumentBuf::new(),
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
            needed: None,
            scope,
        })
    }

    /// What of its documents is known beside their fields that the filter makes.
    fn made(&self) -> Offered {
        if self.filter.holds_text() {
            Offered::TEXT
        } else if self.near.is_some() || self.filter.holds_near() {
            Offered::NEAR
        } else {
            Offered::NONE
        }
    }

    /// The scope of what is evaluated on documents that were found.
    fn parse_scope(&self) -> ParseScope {
        let offered = self.made().and(Offered::PLAN).and(Offered::SORT_KEY);
        self.scope.parse_scope().offering(offered, &self.scope.at_hand)
    }

    /// Whether documents hold their metadata between the stages of the plan.
    pub(crate) fn holds_metadata(&self) -> bool {
        self.returns_keys
            || self.scope.at_hand.is_wanted() && (self.made() != Offered::NONE || self.reads_what_plans_know())
    }

    /// Whether something reads record ids, keys of indexes or what documents were sorted by.
    pub fn reads_what_plans_know(&self) -> bool {
        self.scope.at_hand.wants(Offered::PLAN.and(Offered::SORT_KEY))
    }

    /// Whether something reads record ids.
    pub(crate) fn reads_record_ids(&self) -> bool {
        self.shows_record_ids || self.scope.at_hand.wants(Offered::RECORD_ID)
    }

    /// Whether something reads the keys that lead to documents.
    pub(crate) fn reads_keys(&self) -> bool {
        self.returns_keys || self.scope.at_hand.wants(Offered::INDEX_KEY)
    }

    /// Takes the metadata out of a document that holds it, and has at hand what is known of its record besides.
    /// # Errors
    /// Those of sort keys.
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

    /// What of it decides about its plan.
    pub fn shape(&self) -> QueryShape {
        let sort = self.sort.as_ref().map(crate::explain::sort_document).unwrap_or_default();
        QueryShape::of(
            self.filter_document.as_ref(),
            sort.as_ref(),
            self.projection_document.as_ref(),
            DocumentRef::EMPTY,
        )
    }

    /// Takes `sort`; an empty one is none, and `{$natural: 1}` is a hint.
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

    /// Takes `min` and `max`; empty ones are none.
    pub fn set_key_bounds(&mut self, min: DocumentRef<'_>, max: DocumentRef<'_>) {
        let is_given = !min.is_empty() || !max.is_empty();
        self.key_bounds = is_given.then(|| KeyBounds { min: min.to_owned(), max: max.to_owned() });
    }

    /// Has each document end with its record id, as `showRecordId` asks. The projection must be known.
    pub fn show_record_ids(&mut self) {
        self.shows_record_ids = true;
        // As explain shows it: MongoDB makes it a part of the projection.
        self.projection_document.append(RECORD_ID_FIELD, &DocumentBuf::new().with("$meta", "recordId"));
    }

    /// Has plans leave out what the projection drops, where it only names fields. Not for readers of whole documents.
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

    /// The paths that are all it needs of the documents that are found, where it needs them as they are stored.
    pub(crate) fn needed_alone(&self) -> Option<&[Box<str>]> {
        let is_of_elements = self.distinct.as_ref().is_some_and(|distinct| distinct.of == DistinctOf::Elements);
        let is_more = self.shows_record_ids || self.returns_keys || self.holds_metadata() || is_of_elements;
        self.needed.as_deref().filter(|_| !is_more)
    }

    /// Whether it needs of the documents that are found no more than the keys that led to them.
    pub(crate) fn needs_keys_alone(&self) -> bool {
        self.returns_keys && !self.shows_record_ids && !self.scope.at_hand.wants(Offered::RECORD_ID)
    }

    /// Whether only the number of documents matters, and nothing that is in them.
    pub(crate) fn needs_no_field(&self) -> bool {
        self.needed.as_ref().is_some_and(|needed| needed.is_empty())
            && self.sort.is_none()
            && self.gives_whole_documents()
            && !self.holds_metadata()
    }

    /// Whether documents are given as they were found.
    pub(crate) fn gives_whole_documents(&self) -> bool {
        self.projection.is_none() && !self.shows_record_ids && !self.returns_keys
    }

    /// What the query gives of a record that matches, in `buffer`; the document itself where that is all of it.
    /// # Errors
    /// Those of the projection's expressions.
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
            // The rest of the projection does not count.
            for path in self.projection.iter().flat_map(Projection::sort_key_paths) {
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

    /// What the projection makes of a document that matches, in `buffer`; the document itself where there is none.
    /// # Errors
    /// Those of the projection's expressions.
    pub fn projected<'d>(&self, document: DocumentRef<'d>, buffer: &'d mut Vec<u8>) -> Result<DocumentRef<'d>> {
        let Some(projection) = &self.projection else { return Ok(document) };
        let matched = match projection.positional_path() {
            Some(_) => self.filter.matches_with_position(document)?.and_then(|position| position.index),
            None => None,
        };
        buffer.clear();
        projection.apply(&self.scope.context(document), matched, buffer)?;
        check_document_bytes(buffer.len())?;
        Ok(DocumentRef::trusted(buffer))
    }

    /// Takes `projection`; an empty one is none.
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
        self.projection = Some(Projection::parse(projection, kind, &self.parse_scope())?);
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
    /// `BadValue` where there is no sort; `CommandNotSupported` for one by metadata.
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
        matches!(self.filter.root(), bunko_matcher::Expression::And(children) if children.is_empty())
    }

    /// How many documents have to be found to satisfy skip and limit.
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

/// Reads a field such as `skip` or `limit`; fractions are cut off.
/// # Errors
/// `TypeMismatch` where it is no number, `BadValue` where it is negative.
pub fn parse_count(field: &str, value: ValueRef<'_>) -> Result<u64> {
    let Some(count) = number::clamp_to_i64(value) else {
        return Err(Failure::type_mismatch(format!(
            "BSON field '{field}' is the wrong type '{}', expected types '[long, int, decimal, double]'",
            value.kind().alias()
        )));
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

    #[test]
    fn hints_are_names_patterns_or_natural() {
        assert!(matches!(Hint::parse(ValueRef::String("a_1")), Ok(Some(Hint::Name(_)))));
        let pattern = DocumentBuf::new().with("a", 1);
        assert!(matches!(Hint::parse(ValueRef::Document(pattern.as_ref())), Ok(Some(Hint::KeyPattern(_)))));
        assert!(matches!(Hint::parse(ValueRef::Document(DocumentRef::EMPTY)), Ok(None)));
        assert!(Hint::parse(ValueRef::Int32(1)).is_err());
    }
}
