//! `$vectorSearch`: finds the index that it names, and the nearest documents.

use crate::resolved::{Below, Resolved};
use bunko_aggregate::{ScoredDocuments, StageRun};
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::{Catalog, Collection, Namespace, SearchIndex, from_storage};
use bunko_errors::Result;
use bunko_operation::OperationContext;
use bunko_stages::VECTOR_SEARCH;
use bunko_store::RecordId;
use bunko_vector::{Definition, Hit, Request, query_error};
use std::sync::Arc;

/// Opens the nearest documents. Without a collection, the specification is not parsed. Without an index of that name
/// there are no documents, and a view has none because it cannot have an index.
/// # Errors
/// Errors of the search node and the storage; `Interrupted` if the operation is killed; `CommandNotSupported` on a
/// source that is not stored.
pub(crate) fn open(
    resolved: &Resolved,
    specification: DocumentRef<'_>,
    catalog: &Catalog,
    operation: &OperationContext,
) -> Result<Box<dyn ScoredDocuments>> {
    let nothing = || Box::new(Nothing) as Box<dyn ScoredDocuments>;
    let noted = match &resolved.below {
        Below::Collection(noted) => noted,
        Below::Unstored(unstored) => return Err(unstored.refusal(VECTOR_SEARCH.name, &resolved.namespace)),
        Below::Absent => return Ok(nothing()),
    };
    let request = Request::parse(specification)?;
    if resolved.views_count > 0 && !is_of_view(resolved, specification) {
        return Ok(nothing());
    }
    let collection = &noted.collection;
    let Some(index) = index(collection, &request.index)? else { return Ok(nothing()) };
    let definition = || Definition::of(index.sent.as_ref());
    let version = (index.id, index.version);
    let hits = collection.nearest(version, &definition, &request, catalog.vector_memory(), operation)?;
    Ok(Box::new(FoundDocuments { collection: Arc::clone(collection), hits: hits.into_iter(), document: Vec::new() }))
}

/// Whether the search is the first stage of a view's own pipeline. It then searches the collection below the view.
fn is_of_view(resolved: &Resolved, specification: DocumentRef<'_>) -> bool {
    let first = resolved.views.as_ref().iter().next().and_then(|stage| stage.as_document()?.first());
    let first = first.filter(|first| first.name == VECTOR_SEARCH.name).and_then(|first| first.value.as_document());
    first.is_some_and(|own| own.as_bytes() == specification.as_bytes())
}

/// Finds the vector index of that name; `None` if there is none.
/// # Errors
/// The search node's error for an index of another type.
fn index(collection: &Collection, name: &str) -> Result<Option<Arc<SearchIndex>>> {
    match collection.search_index(name) {
        Some(index) if index.definition.kind() != "vectorSearch" => Err(query_error(format!(
            "Cannot execute $vectorSearch over search index '{name}': its type is search, and not vectorSearch"
        ))),
        index => Ok(index),
    }
}

/// A search that finds no documents.
struct Nothing;

impl ScoredDocuments for Nothing {
    fn next(&mut self) -> Result<Option<(DocumentBuf, f64)>> {
        Ok(None)
    }
}

/// Reads documents by their record ids when they are asked for. Documents that were deleted by then are left out.
struct FoundDocuments {
    collection: Arc<Collection>,
    hits: std::vec::IntoIter<Hit>,
    document: Vec<u8>,
}

impl ScoredDocuments for FoundDocuments {
    fn next(&mut self) -> Result<Option<(DocumentBuf, f64)>> {
        if self.collection.is_dropped() {
            return Ok(None);
        }
        let (records, store) = (self.collection.records(), self.collection.store());
        for hit in self.hits.by_ref() {
            let document = &mut self.document;
            let found = store.read_latest(|latest| latest.record(records, RecordId(hit.record), document));
            if found.map_err(from_storage)?.is_some() {
                return Ok(Some((DocumentBuf::from_trusted(document.clone()), hit.score.into())));
            }
        }
        Ok(None)
    }
}

/// Makes the `explain` stages of a pipeline that begins with a search.
/// # Errors
/// Errors of the search node and of the storage.
pub fn explain(
    namespace: &Namespace,
    collection: Option<&Arc<Collection>>,
    sent: ArrayRef<'_>,
    runs: &[Arc<StageRun>],
) -> Result<ArrayBuf> {
    let mut stages = ArrayBuf::new();
    for (position, stage) in sent.iter().filter_map(ValueRef::as_document).enumerate() {
        let mut described = match (stage.first(), collection) {
            (Some(first), Some(collection)) if first.name == VECTOR_SEARCH.name => {
                let specification = first.value.as_document().unwrap_or(DocumentRef::EMPTY);
                let mut told = specification.to_owned();
                told.append("explain", &explain_search(namespace, collection, specification)?);
                DocumentBuf::new().with(first.name, &told)
            }
            _ => stage.to_owned(),
        };
        if let Some(run) = runs.get(position) {
            run.describe(&mut described);
        }
        stages.push(&described);
    }
    Ok(stages)
}

/// Explains a search as MongoDB's search node does.
/// Source: MongoDB manual, "Explain Vector Search Results".
fn explain_search(
    namespace: &Namespace,
    collection: &Arc<Collection>,
    specification: DocumentRef<'_>,
) -> Result<DocumentBuf> {
    let request = Request::parse(specification)?;
    let Some(index) = index(collection, &request.index)? else { return Ok(DocumentBuf::new()) };
    let definition = Definition::of(index.sent.as_ref());
    request.check(&definition)?;
    let mut arguments = DocumentBuf::new().with("path", request.path.as_str());
    let kind = match request.candidates {
        Some(candidates) => {
            arguments.append("k", candidates as i32);
            "WrappedKnnQuery"
        }
        None => "ExactVectorSearchQuery",
    };
    let query = DocumentBuf::new().with("type", kind).with("args", &arguments);
    let metadata = DocumentBuf::new()
        .with("indexName", request.index.as_str())
        .with("namespace", namespace.as_str())
        .with("totalDocs", collection.count() as i64);
    let mut explained = DocumentBuf::new().with("query", &query).with("metadata", &metadata);
    if !request.traced.is_empty() {
        let mut traced = ArrayBuf::new();
        for id in &request.traced {
            traced.push(&trace(collection, &definition, &request, id.as_ref())?);
        }
        explained.append("vectorTracing", &traced);
    }
    Ok(explained)
}

/// Explains why a search found one document, or did not.
fn trace(
    collection: &Arc<Collection>,
    definition: &Definition,
    request: &Request,
    id: ValueRef<'_>,
) -> Result<DocumentBuf> {
    let mut told = DocumentBuf::new().with("documentId", id);
    let record = collection.record_of_id(id, &*OperationContext::unlimited())?;
    let score = record.map(|record| collection.nearness(definition, request, record)).transpose()?.flatten();
    match (record, score) {
        (None, _) => told.append("unreachable", "no document has this _id"),
        (Some(_), None) => told.append("unreachable", "it has no vector that is compared, or the filter leaves it out"),
        (Some(_), Some(score)) => told.append("vectorSearchScore", f64::from(score)),
    };
    Ok(told)
}
