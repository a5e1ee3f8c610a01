//! Deleting what is too old: by a TTL index, by the `_id` of a clustered collection, or whole buckets of time series.

use super::Writes;
use super::search::{Operation, Wanted};
use crate::find_query::{FindQuery, Hint};
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_catalog::{Index, Verdict};
use bunko_errors::Result;
use bunko_update::Targets;
use std::sync::Arc;

impl Writes<'_> {
    /// Deletes documents of the index whose date there is `until_ms` (milliseconds since 1970) or earlier, of several dates
    /// the earliest; `count_max` of them at most. How many there were.
    /// # Errors
    /// What the scope's operation says, and what the store does.
    pub fn delete_expired(&mut self, index: &Index, until_ms: i64, count_max: u64) -> Result<u64> {
        // Queries pass a hidden index over, and then the whole collection is looked through.
        let hint = (!index.is_hidden).then(|| Hint::Name(index.name.clone()));
        self.delete_some(&expired(index, until_ms), hint, count_max)
    }

    /// Deletes documents that match, by the index that is hinted at; `count_max` of them at most. How many there were.
    /// # Errors
    /// As [`Self::delete_expired`].
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
