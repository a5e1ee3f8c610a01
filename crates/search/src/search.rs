//! Runs a search query over the documents of a collection.
//!
//! If the index has usable postings, they give the frequencies of words and the documents that may match. Otherwise the
//! search scans all documents, and reads each as the index would: once to count words, if scores need the counts, and
//! once to match and score. It keeps one short record per hit.

use crate::evaluation::Evaluation;
use crate::operators::UseOfPostings;
use crate::postings::{Postings, Rows};
use crate::query::{From, SearchStage};
use crate::schema::Schema;
use crate::token::SequenceToken;
use crate::unit::{Child, Unit};
use crate::{Definition, Refusal, SearchQuery, StoredSource, stored};
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;
use std::sync::Arc;

/// Maximum number of bytes of hits that a search keeps.
pub const FOUND_BYTES_MAX: usize = 100 << 20;

/// The documents of a collection. Repeated reads give the same documents in the same order.
pub trait Documents {
    /// Visits all documents, each with its record number.
    /// # Errors
    /// Errors of the visitor and of the storage.
    fn scan(&mut self, visit: &mut dyn FnMut(i64, DocumentRef<'_>) -> Result<()>) -> Result<()>;

    /// Visits the documents of some records, given in ascending order.
    /// # Errors
    /// As [`Self::scan`].
    fn read(&mut self, records: &[u64], visit: &mut dyn FnMut(i64, DocumentRef<'_>) -> Result<()>) -> Result<()>;

    /// Passes the postings of an index with that schema to `ask`. Returns whether there are any. From then on, the
    /// documents are those that the postings were made from.
    /// # Errors
    /// Errors of `ask`, of the storage and of the operation.
    fn ask(&mut self, _schema: &Arc<Schema>, _ask: &mut dyn FnMut(&Postings) -> Result<()>) -> Result<bool> {
        Ok(false)
    }
}

/// A matching document.
pub type Hit = SequenceToken;

/// The result of a search.
#[derive(Debug)]
pub struct SearchResult {
    /// The hits in order.
    pub hits: Vec<Hit>,
    /// Metadata of all hits: `$$SEARCH_META`.
    pub metadata: DocumentBuf,
}

/// A hit in the form that the stage returns.
#[derive(Debug)]
pub struct Shown {
    /// The returned document or part of it.
    pub document: DocumentBuf,
    /// Metadata for `$meta`.
    pub metadata: DocumentBuf,
}

/// The metadata of a search whose index does not exist.
pub fn metadata_of_nothing() -> DocumentBuf {
    DocumentBuf::new().with("count", &DocumentBuf::new().with("total", 0_i64))
}

/// A search over an index.
pub struct Search {
    query: SearchQuery,
    evaluation: Evaluation,
}

impl Search {
    /// Prepares a query for an index.
    /// # Errors
    /// `UnknownError` if the index lacks a field that the query needs.
    pub fn new(query: SearchQuery, definition: &Arc<Definition>, operation: Arc<OperationContext>) -> Result<Self> {
        let schema = Arc::new(Schema::new(definition, "definition")?);
        if let Some(clause) = &query.clause {
            clause.operator.check(&schema)?;
        }
        if let Some(highlight) = &query.highlight {
            highlight.check(&schema)?;
        }
        query.facets.iter().try_for_each(|facet| facet.check(&schema))?;
        if query.returns_stored && query.scope.is_none() && definition.stored_source == StoredSource::Nothing {
            return Err(Refusal::Query.failure("storedSource is not configured for this index"));
        }
        if let Some(scope) = &query.scope {
            check_scope(scope, &query, &schema)?;
        }
        Ok(Self { query, evaluation: Evaluation::new(schema, operation) })
    }

    fn unit<'d>(&'d self, document: DocumentRef<'d>) -> Unit<'d> {
        Unit::of(document, &self.evaluation.schema.definition.mapping)
    }

    /// The units of a document that may match: the document, or its embedded documents in the scope.
    fn each<'u, 'd>(&self, unit: &'u Unit<'d>) -> Vec<&'u Unit<'d>> {
        match &self.query.scope {
            None => vec![unit],
            Some(scope) => children(unit, scope).into_iter().map(|child| &child.unit).collect(),
        }
    }

    /// Finds all hits.
    /// # Errors
    /// Errors of the storage and of the operation; `ExceededMemoryLimit` if the hits need more memory than allowed.
    pub fn run(&self, documents: &mut dyn Documents, asked: SearchStage) -> Result<SearchResult> {
        let (query, evaluation) = (&self.query, &self.evaluation);
        let candidates = self.candidates(documents)?;
        if let (Some(clause), Candidates::Unknown) = (&query.clause, &candidates) {
            documents.scan(&mut |_, document| {
                evaluation.next_document();
                evaluation.operation.work(1 + document.as_bytes().len() / 64)?;
                let unit = self.unit(document);
                self.each(&unit).into_iter().try_for_each(|unit| clause.operator.count(unit, evaluation))
            })?;
        }
        let (mut hits, mut bytes, mut count) = (Vec::new(), 0, 0_i64);
        let mut counts: Vec<_> = query.facets.iter().map(super::facet::Facet::counts).collect();
        let mut visit = |record, document: DocumentRef<'_>| {
            evaluation.next_document();
            evaluation.operation.work(1 + document.as_bytes().len() / 64)?;
            let whole = self.unit(document);
            for (part, unit) in self.each(&whole).into_iter().enumerate() {
                let score = match &query.clause {
                    Some(clause) => clause.score(unit, evaluation)?,
                    None => Some(1.0),
                };
                let Some(score) = score else { continue };
                count += 1;
                for (facet, counts) in query.facets.iter().zip(&mut counts) {
                    // Each facet searches all fields for its values, and keeps those of the document.
                    evaluation.operation.work(1 + unit.fields.len() / 4)?;
                    facet.count(unit, counts)?;
                }
                if asked == SearchStage::Documents {
                    let hit = Hit { score, keys: query.sort.values(unit), record, part: part as u32 };
                    bytes += kept_bytes(&hit);
                    if bytes > FOUND_BYTES_MAX {
                        let message = format!("a search found more than it can keep in {FOUND_BYTES_MAX} bytes");
                        return Err(Failure::new(ErrorCode::EXCEEDED_MEMORY_LIMIT, message));
                    }
                    hits.push(hit);
                }
            }
            Ok(())
        };
        match candidates {
            Candidates::These(records) => documents.read(&records, &mut visit)?,
            Candidates::All | Candidates::Unknown => documents.scan(&mut visit)?,
        }
        evaluation.next_document();
        Ok(SearchResult { hits: self.ordered(hits), metadata: self.metadata(count, counts) })
    }

    /// The documents that may match, according to the postings.
    fn candidates(&self, documents: &mut dyn Documents) -> Result<Candidates> {
        let (query, evaluation) = (&self.query, &self.evaluation);
        let Some(clause) = &query.clause else { return Ok(Candidates::Unknown) };
        if query.scope.is_some() || clause.operator.use_of_postings() != UseOfPostings::Wanted {
            return Ok(Candidates::Unknown);
        }
        let mut candidates = Candidates::Unknown;
        documents.ask(&evaluation.schema, &mut |postings| {
            if postings.is_usable() {
                candidates = match clause.operator.candidates(postings, evaluation)? {
                    Rows::All => Candidates::All,
                    Rows::These(rows) => Candidates::These(postings.records(&rows)),
                };
            }
            Ok(())
        })?;
        Ok(candidates)
    }

    fn ordered(&self, mut hits: Vec<Hit>) -> Vec<Hit> {
        let sort = &self.query.sort;
        hits.sort_by(|one, other| sort.compare(one, other));
        match &self.query.from {
            None => {}
            Some(From::After(token)) => hits.retain(|hit| sort.compare(hit, token).is_gt()),
            Some(From::Before(token)) => {
                hits.retain(|hit| sort.compare(hit, token).is_lt());
                hits.reverse();
            }
        }
        hits
    }

    fn metadata(&self, count: i64, counts: Vec<crate::facet::Counts>) -> DocumentBuf {
        let count = DocumentBuf::new().with(self.query.count.name(), count);
        let mut metadata = DocumentBuf::new().with("count", &count);
        if !self.query.facets.is_empty() {
            let mut told = DocumentBuf::new();
            for (facet, counts) in self.query.facets.iter().zip(counts) {
                facet.tell(counts, &mut told);
            }
            metadata.append("facet", &told);
        }
        metadata
    }

    /// Builds the result for a hit; `None` if the document lacks the hit's embedded document. `document` may have been
    /// read again, but must be as it was when the hit was found.
    /// # Errors
    /// Errors of counting work.
    pub fn show(&self, hit: &Hit, document: DocumentRef<'_>) -> Result<Option<Shown>> {
        let (query, evaluation) = (&self.query, &self.evaluation);
        evaluation.next_document();
        let whole = self.unit(document);
        let (unit, shown) = match &query.scope {
            None if query.returns_stored => {
                (&whole, stored::shown(document, &evaluation.schema.definition.stored_source))
            }
            None => (&whole, document.to_owned()),
            Some(scope) => {
                let children = children(&whole, scope);
                let Some(child) = children.get(hit.part as usize) else { return Ok(None) };
                let source = evaluation.schema.embedded(scope).map_or(&StoredSource::Nothing, |(_, source)| source);
                (&child.unit, stored::shown(child.document, &source.below(scope)))
            }
        };
        let mut metadata = DocumentBuf::new().with("searchScore", f64::from(hit.score));
        metadata.append("searchSequenceToken", hit.to_text().as_str());
        if let Some(clause) = &query.clause {
            if let Some(highlight) = &query.highlight {
                metadata.append("searchHighlights", &highlight.of(unit, clause, evaluation)?);
            }
            if query.tells_details
                && let Some(details) = clause.details(unit, evaluation)?
            {
                metadata.append("searchScoreDetails", &details.to_document());
            }
        }
        evaluation.next_document();
        Ok(Some(Shown { document: shown, metadata }))
    }
}

/// The documents that a search must read.
enum Candidates {
    /// All documents; scores may need another scan first, to count words.
    Unknown,
    /// All documents.
    All,
    /// The documents of these records, in ascending order.
    These(Vec<u64>),
}

fn kept_bytes(hit: &Hit) -> usize {
    let keys = hit.keys.iter().map(|key| size_of_val(key) + key.as_ref().as_str().map_or(0, str::len));
    size_of::<Hit>() + keys.sum::<usize>()
}

fn check_scope(scope: &str, query: &SearchQuery, schema: &Schema) -> Result<()> {
    if !schema.embedded(scope).is_some_and(|(_, source)| *source != StoredSource::Nothing) {
        let message = format!("returnScope path \"{scope}\" must be indexed as embeddedDocuments with a storedSource");
        return Err(Refusal::Query.failure(message));
    }
    let path = query.clause.as_ref().and_then(|clause| clause.operator.embedded_path());
    let is_inside = |path: &str| path.strip_prefix(scope).is_some_and(|rest| rest.starts_with('.'));
    if path.is_some_and(|path| !is_inside(path)) {
        let message = format!("returnScope path \"{scope}\" must be an ancestor of the operator's path");
        return Err(Refusal::Query.failure(message));
    }
    Ok(())
}

fn children<'u, 'd>(unit: &'u Unit<'d>, scope: &str) -> Vec<&'u Child<'d>> {
    let mut found = Vec::new();
    unit.embedded(scope, &mut found);
    found
}
