//! A scan in record order that yields matching records and knows its position.

use crate::find_query::FindQuery;
use bunko_bson::DocumentRef;
use bunko_catalog::from_storage;
use bunko_errors::Result;
use bunko_store::{RecordCursor, RecordId};
use std::sync::Arc;

/// State of a scan between two cursors.
pub(crate) struct RecordScan {
    query: Arc<FindQuery>,
    /// The record examined last.
    pub place: Option<RecordId>,
    /// Documents examined so far.
    pub examined: u64,
    skipped: u64,
    returned: u64,
    matched: Vec<u8>,
    projected: Vec<u8>,
}

impl RecordScan {
    pub fn new(query: Arc<FindQuery>) -> Self {
        Self { query, place: None, examined: 0, skipped: 0, returned: 0, matched: Vec::new(), projected: Vec::new() }
    }

    /// Whether the query's limit is reached.
    pub fn is_over(&self) -> bool {
        self.query.limit.is_some_and(|limit| self.returned >= limit)
    }

    /// Goes to the next record that matches; `false` at the end.
    /// # Errors
    /// Errors of storage, of expressions and of the operation.
    pub fn search(&mut self, cursor: &mut dyn RecordCursor) -> Result<bool> {
        while let Some((record, _, bytes)) = cursor.next().map_err(from_storage)? {
            self.query.scope.operation.work(1 + bytes.len() / 64)?;
            self.place = Some(record);
            self.examined += 1;
            if !self.query.filter.try_matches(DocumentRef::trusted(bytes))? {
                continue;
            }
            if self.skipped < self.query.skip {
                self.skipped += 1;
                continue;
            }
            self.matched.clear();
            self.matched.extend_from_slice(bytes);
            return Ok(true);
        }
        Ok(false)
    }

    /// The document found last, as the query returns it.
    /// # Errors
    /// Errors of the projection.
    pub fn give(&mut self) -> Result<Option<DocumentRef<'_>>> {
        self.returned += 1;
        let Some(record) = self.place else { return Ok(None) };
        self.query.given(record, DocumentRef::trusted(&self.matched), &mut self.projected).map(Some)
    }
}
