//! Deleting expired documents: by a TTL index, by the `_id` of a clustered collection, or whole time series buckets.

use super::Writes;
use super::all::Rest;
use super::search::{Operation, Search, Wanted};
use crate::find_query::FindQuery;
use crate::hint::Hint;
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_catalog::{Collection, Index, Verdict};
use bunko_errors::Result;
use bunko_update::Targets;
use std::sync::Arc;

/// A search for expired documents that goes on from batch to batch. A new search per batch would walk over all the
/// entries that earlier batches deleted.
pub struct Expiring {
    collection: Arc<Collection>,
    wanted: Wanted<'static>,
    search: Search,
    deleted: u64,
    is_over: bool,
}

impl Expiring {
    /// Number of documents that it has deleted.
    pub fn deleted(&self) -> u64 {
        self.deleted
    }

    /// Whether the search has ended.
    pub fn is_over(&self) -> bool {
        self.is_over
    }
}

impl Writes<'_> {
    /// Searches documents whose date in the index is `until_ms` (milliseconds since 1970) or earlier. If a document has
    /// several dates, the earliest counts.
    /// # Errors
    /// Errors of the scope's operation and of storage.
    pub fn search_expired(&self, collection: &Arc<Collection>, index: &Index, until_ms: i64) -> Result<Expiring> {
        // The index's partial filter compares strings as its keys do.
        let scope = Arc::new(self.scope.with_strings(&index.strings));
        let mut query = FindQuery::new(expired(index, until_ms).as_ref(), scope)?;
        // Queries ignore a hidden index, and then the search scans the whole collection.
        query.hint = (!index.is_hidden).then(|| Hint::Name(index.name.clone()));
        let wanted = Wanted::of_query(query, Operation::Delete);
        let search = Self::search(&wanted, collection, &self.scope)?;
        Ok(Expiring { collection: Arc::clone(collection), wanted, search, deleted: 0, is_over: false })
    }

    /// Deletes the next documents of a search that are still expired, `count_max` at most. Returns the number deleted.
    /// # Errors
    /// As [`Self::search_expired`].
    pub fn delete_expired(&mut self, expiring: &mut Expiring, count_max: u64) -> Result<u64> {
        let (of, search) = ((&expiring.collection, &expiring.wanted), &mut expiring.search);
        let (changes, rest) = self.change_found(of, search, count_max, &mut |_, _| Ok(Verdict::Delete))?;
        expiring.is_over = rest == Rest::Nothing;
        expiring.deleted += changes.changed;
        Ok(changes.changed)
    }

    /// Deletes documents that match, at most `count_max`, by the hinted index. Returns the number deleted.
    /// # Errors
    /// As [`Self::search_expired`].
    pub fn delete_some(&mut self, filter: &DocumentBuf, hint: Option<Hint>, count_max: u64) -> Result<u64> {
        let mut query = FindQuery::new(filter.as_ref(), Arc::clone(&self.scope))?;
        query.hint = hint;
        query.limit = Some(count_max);
        let wanted = Wanted::of_query(query, Operation::Delete);
        let changes = self.change_matching(&wanted, Targets::Many, &mut |_, _| Ok(Verdict::Delete))?;
        Ok(changes.changed)
    }
}

/// The filter for expired documents. A comparison with a date matches dates only.
fn expired(index: &Index, until_ms: i64) -> DocumentBuf {
    let path = index.fields.first().map_or("", |field| field.path.as_str());
    let date = DocumentBuf::new().with("$lte", ValueRef::DateTime(until_ms));
    let old = DocumentBuf::new().with(path, &date);
    match index.document.as_ref().get("partialFilterExpression").and_then(ValueRef::as_document) {
        None => old,
        Some(partial) => {
            let mut both = ArrayBuf::new();
            both.push(&old);
            both.push(partial);
            DocumentBuf::new().with("$and", &both)
        }
    }
}
