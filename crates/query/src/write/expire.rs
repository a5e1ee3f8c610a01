//! Deleting what is too old: by a TTL index, by the `_id` of a clustered collection, or whole buckets of time series.

use super::Writes;
use super::all::Rest;
use super::search::{Operation, Search, Wanted};
use crate::find_query::{FindQuery, Hint};
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_catalog::{Collection, Index, Verdict};
use bunko_errors::Result;
use bunko_update::Targets;
use std::sync::Arc;

/// A search for what is too old. It is gone on with from batch to batch: one that began anew would walk over what the
/// batches before have deleted, each time over more.
pub struct Expiring {
    collection: Arc<Collection>,
    wanted: Wanted<'static>,
    search: Search,
    deleted: u64,
    is_over: bool,
}

impl Expiring {
    /// How many documents have been deleted by it.
    pub fn deleted(&self) -> u64 {
        self.deleted
    }

    /// Whether it has come to its end.
    pub fn is_over(&self) -> bool {
        self.is_over
    }
}

impl Writes<'_> {
    /// Searches the documents of the index whose date there is `until_ms` (milliseconds since 1970) or earlier, of several dates
    /// the earliest.
    /// # Errors
    /// What the scope's operation says, and what the store does.
    pub fn search_expired(&self, collection: &Arc<Collection>, index: &Index, until_ms: i64) -> Result<Expiring> {
        // The index's partial filter compares strings as its keys do.
        let scope = Arc::new(self.scope.with_strings(&index.strings));
        let mut query = FindQuery::new(expired(index, until_ms).as_ref(), scope)?;
        // Queries pass a hidden index over, and then the whole collection is looked through.
        query.hint = (!index.is_hidden).then(|| Hint::Name(index.name.clone()));
        let wanted = Wanted::of_query(query, Operation::Delete);
        let search = Self::search(&wanted, collection, &self.scope)?;
        Ok(Expiring { collection: Arc::clone(collection), wanted, search, deleted: 0, is_over: false })
    }

    /// Deletes the next documents of a search that still are too old, `count_max` at most; how many there were.
    /// # Errors
    /// As [`Self::search_expired`].
    pub fn delete_expired(&mut self, expiring: &mut Expiring, count_max: u64) -> Result<u64> {
        let (of, search) = ((&expiring.collection, &expiring.wanted), &mut expiring.search);
        let (changes, rest) = self.change_found(of, search, count_max, &mut |_, _| Ok(Verdict::Delete))?;
        expiring.is_over = rest == Rest::Nothing;
        expiring.deleted += changes.changed;
        Ok(changes.changed)
    }

    /// Deletes documents that match, by the index that is hinted at; `count_max` of them at most. How many there were.
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

/// What the documents match: a comparison with a date is satisfied by dates only.
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
