//! The specification of a search stage: an operator or facets, and options.

use crate::facet::{self, Facet};
use crate::highlight::Highlight;
use crate::operators::Clause;
use crate::sort::Sort;
use crate::token::SequenceToken;
use crate::{Reader, Refusal};
use bunko_bson::{DocumentRef, ValueRef};
use bunko_errors::Result;

/// The default name of an index.
const INDEX_USUAL: &str = "default";

/// The specification of `$search` or `$searchMeta`.
#[derive(Debug)]
pub struct SearchQuery {
    /// The name of the index.
    pub index: String,
    /// The operator; without one, for facets alone, all documents match.
    pub(crate) clause: Option<Clause>,
    pub(crate) facets: Vec<Facet>,
    pub(crate) count: CountType,
    pub(crate) highlight: Option<Highlight>,
    pub(crate) sort: Sort,
    pub(crate) from: Option<From>,
    pub(crate) tells_details: bool,
    pub(crate) returns_stored: bool,
    /// The path of embedded documents that are returned instead of the documents around them.
    pub(crate) scope: Option<String>,
}

/// The start of the results within all hits.
#[derive(Debug)]
pub(crate) enum From {
    After(SequenceToken),
    /// Before this token, in reverse order.
    Before(SequenceToken),
}

/// How the number of hits is reported; the number is exact in both cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CountType {
    LowerBound,
    Total,
}

impl CountType {
    pub fn name(self) -> &'static str {
        match self {
            Self::LowerBound => "lowerBound",
            Self::Total => "total",
        }
    }
}

/// The stage that searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchStage {
    /// `$search`: returns documents.
    Documents,
    /// `$searchMeta`: returns metadata of all hits.
    Metadata,
}

impl SearchQuery {
    /// Parses the specification of a stage.
    /// # Errors
    /// `UnknownError` for a malformed specification; `CommandNotSupported` for unsupported options.
    pub fn parse(specification: DocumentRef<'_>, asked: SearchStage) -> Result<Self> {
        let reader = Reader::new(specification, "", Refusal::Query);
        let index = reader.word("index")?.unwrap_or(INDEX_USUAL).to_owned();
        let operators = Clause::names(&reader);
        let collector = reader.inner("facet")?;
        let (clause, facets) = match collector {
            Some(_) if !operators.is_empty() => {
                return Err(reader.failure(&format!("only one of [facet, {}] may be present", operators.join(", "))));
            }
            Some(collector) => facet::parse(&collector)?,
            None => (Some(Clause::parse(&reader)?), Vec::new()),
        };
        let (count, from) = (count(&reader)?, from(&reader)?);
        let highlight = reader.inner("highlight")?.map(|inner| Highlight::parse(&inner)).transpose()?;
        let sort = reader.inner("sort")?.map(|inner| Sort::parse(&inner)).transpose()?.unwrap_or_default();
        let tells_details = reader.boolean("scoreDetails")?.unwrap_or(false);
        let returns_stored = reader.boolean("returnStoredSource")?.unwrap_or(false);
        let scope = scope(&reader)?;
        if scope.is_some() && !returns_stored && asked == SearchStage::Documents {
            return Err(reader.failure("\"returnScope\" requires \"returnStoredSource\" to be true"));
        }
        without_effect(&reader)?;
        reader.done()?;
        Ok(Self { index, clause, facets, count, highlight, sort, from, tells_details, returns_stored, scope })
    }
}

/// Checks settings that tell search nodes how to work: the node, the number of threads, the tracking of searches. They
/// do not change results, and there are no search nodes here.
fn without_effect(reader: &Reader<'_>) -> Result<()> {
    reader.boolean("concurrent")?;
    if let Some(preference) = reader.inner("searchNodePreference")? {
        preference.required(preference.string("key")?, "key")?;
        preference.done()?;
    }
    if let Some(tracking) = reader.inner("tracking")? {
        tracking.required(tracking.string("searchTerms")?, "searchTerms")?;
        tracking.done()?;
    }
    Ok(())
}

fn count(reader: &Reader<'_>) -> Result<CountType> {
    let Some(count) = reader.inner("count")? else { return Ok(CountType::LowerBound) };
    let kind = count.one_of("type", &[("lowerBound", CountType::LowerBound), ("total", CountType::Total)])?;
    // All hits are counted anyway.
    count.integer_within("threshold", 0, i64::from(i32::MAX))?;
    count.done()?;
    Ok(kind.unwrap_or(CountType::LowerBound))
}

fn from(reader: &Reader<'_>) -> Result<Option<From>> {
    let token = |name: &str| {
        let Some(text) = reader.word(name)? else { return Ok(None) };
        let token = SequenceToken::parse(text).ok_or_else(|| reader.wrong(name, "is not a valid sequence token"));
        token.map(Some)
    };
    match (token("searchAfter")?, token("searchBefore")?) {
        (Some(_), Some(_)) => Err(reader.failure("only one of [searchAfter, searchBefore] may be present")),
        (Some(token), None) => Ok(Some(From::After(token))),
        (None, Some(token)) => Ok(Some(From::Before(token))),
        (None, None) => Ok(None),
    }
}

fn scope(reader: &Reader<'_>) -> Result<Option<String>> {
    let Some(scope) = reader.inner("returnScope")? else { return Ok(None) };
    let path = scope.required(scope.word("path")?, "path")?.to_owned();
    scope.done()?;
    Ok(Some(path))
}

/// Whether an option of `$search` that the server itself reads is `true`.
pub fn has_true(specification: DocumentRef<'_>, name: &str) -> bool {
    matches!(specification.get(name), Some(ValueRef::Boolean(true)))
}
