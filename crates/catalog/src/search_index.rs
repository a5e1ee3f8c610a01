//! The search indexes of a collection, of type `search` and of type `vectorSearch`.
//!
//! They are stored in the collection's record of the catalog, in the field `searchIndexes`:
//!
//! ```text
//! searchIndexes: [{
//!     id: ObjectId,             as `$listSearchIndexes` shows it, 24 hexadecimal digits
//!     name: string,             unique among the collection's search indexes
//!     type: "search" | "vectorSearch",
//!     version: int64,           0 at creation, one more after each `updateSearchIndex`
//!     createdAt: date,          time of this version
//!     definition: document,     as the client sent it
//! }]
//! ```
//!
//! A search reads [`SearchIndex::definition`], which is parsed from the document `definition`. Search indexes live as
//! long as the collection: a rename and `collMod` keep them, a drop removes them. Other commands and the planner do not
//! see them.

use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ObjectId, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_search::SearchIndexDefinition;
use std::sync::Arc;

/// Maximum number of search indexes of one collection.
pub const SEARCH_INDEXES_MAX: usize = 64;

/// A search index of either type.
#[derive(Clone, Debug)]
pub struct SearchIndex {
    /// Its id, which an update keeps.
    pub id: ObjectId,
    /// Its name.
    pub name: String,
    /// Number of updates.
    pub version: i64,
    /// Time of this version, in milliseconds since 1970.
    pub created_at_ms: i64,
    /// The definition as the client sent it.
    pub sent: DocumentBuf,
    /// The parsed definition.
    pub definition: SearchIndexDefinition,
}

impl SearchIndex {
    fn to_document(&self) -> DocumentBuf {
        DocumentBuf::new()
            .with("id", ValueRef::ObjectId(self.id))
            .with("name", self.name.as_str())
            .with("type", self.definition.kind())
            .with("version", self.version)
            .with("createdAt", ValueRef::DateTime(self.created_at_ms))
            .with("definition", &self.sent)
    }

    fn from_document(document: DocumentRef<'_>) -> Option<Result<Self>> {
        let (Some(ValueRef::ObjectId(id)), Some(ValueRef::Int64(version))) =
            (document.get("id"), document.get("version"))
        else {
            return None;
        };
        let Some(ValueRef::DateTime(created_at_ms)) = document.get("createdAt") else { return None };
        let name = document.get("name")?.as_str()?.to_owned();
        let sent = document.get("definition")?.as_document()?;
        let definition = SearchIndexDefinition::parse(document.get("type")?.as_str()?, sent, "definition");
        Some(definition.map(|definition| Self { id, name, version, created_at_ms, sent: sent.to_owned(), definition }))
    }
}

/// The search indexes in a collection's record.
/// # Errors
/// `InternalError` for a malformed record; as [`SearchIndexDefinition::parse`] for a definition that this server does
/// not understand.
pub(crate) fn read(record: DocumentRef<'_>) -> Result<Vec<Arc<SearchIndex>>> {
    let malformed =
        || Failure::new(ErrorCode::INTERNAL_ERROR, "the catalog's record lacks a well-formed 'searchIndexes'");
    let Some(found) = record.get("searchIndexes") else { return Ok(Vec::new()) };
    let read = |value: ValueRef<'_>| {
        let index = value.as_document().and_then(SearchIndex::from_document).ok_or_else(malformed)?;
        index.map(Arc::new)
    };
    found.as_array().ok_or_else(malformed)?.iter().map(read).collect()
}

/// All search indexes of a collection.
pub type SearchIndexes = Vec<Arc<SearchIndex>>;

/// The search indexes as a collection's record stores them; `None` if there are none.
pub(crate) fn encode(indexes: &[Arc<SearchIndex>]) -> Option<ArrayBuf> {
    let encoded = || indexes.iter().map(|index| index.to_document()).collect::<Vec<_>>().iter().collect();
    (!indexes.is_empty()).then(encoded)
}
