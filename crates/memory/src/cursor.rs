//! Walking record stores and indexes.

use crate::document::Document;
use crate::key::{IndexKey, PackedRecordId};
use crate::records::RecordWalk;
use bunko_store::{KeyCursor, Location, RecordCursor, RecordId, Result};
use bunko_versions::Walk;

/// Lends documents by keeping the one shown last.
pub(crate) struct MemoryRecordCursor {
    walk: Option<RecordWalk>,
    shown: Option<Document>,
}

impl MemoryRecordCursor {
    pub fn new(walk: Option<RecordWalk>) -> Self {
        Self { walk, shown: None }
    }
}

impl RecordCursor for MemoryRecordCursor {
    fn next(&mut self) -> Result<Option<(RecordId, Location, &[u8])>> {
        let Some((record, document)) = self.walk.as_mut().and_then(Iterator::next) else { return Ok(None) };
        let document = self.shown.insert(document);
        Ok(Some((record, document.location(), document.bytes())))
    }
}

/// Lends keys by keeping the one shown last.
pub(crate) struct MemoryKeyCursor {
    walk: Option<Walk<IndexKey, PackedRecordId>>,
    shown: Option<IndexKey>,
}

impl MemoryKeyCursor {
    pub fn new(walk: Option<Walk<IndexKey, PackedRecordId>>) -> Self {
        Self { walk, shown: None }
    }
}

impl KeyCursor for MemoryKeyCursor {
    fn next(&mut self) -> Result<Option<(&[u8], RecordId)>> {
        let Some(walk) = &mut self.walk else { return Ok(None) };
        let Some((key, target)) = walk.find_map(|(key, target)| Some((key, target?))) else { return Ok(None) };
        Ok(Some((&**self.shown.insert(key), target.record())))
    }
}
