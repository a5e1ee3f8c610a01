//! Documents that stand in an engine's files before the log says so.

use crate::{Batch, KeyspaceId, Location};

/// A file of documents that an engine wrote ahead of the log, durable and seen by no view.
///
/// A batch that [adopts](Staged::adopt) it comes first; batches that [place](Batch::place_record) its documents follow.
/// What is never placed is dead from the start, and a file that is never adopted goes when this is dropped. It is held
/// until the last batch is committed: up to then the engine leaves the file alone.
pub struct Staged {
    keyspace: KeyspaceId,
    number: u64,
    documents_bytes: u64,
    locations: Vec<Location>,
    _hold: Box<dyn Send>,
}

impl Staged {
    /// What an engine returns: the file's number, where the documents are in it, and what to drop at the end.
    pub fn new(keyspace: KeyspaceId, number: u64, locations: Vec<Location>, hold: Box<dyn Send>) -> Self {
        let documents_bytes = locations.iter().map(|location| u64::from(location.length)).sum();
        Self { keyspace, number, documents_bytes, locations, _hold: hold }
    }

    /// Where the documents are, in the order in which they were given.
    pub fn locations(&self) -> &[Location] {
        &self.locations
    }

    /// Adds to a batch that the file belongs to the engine.
    pub fn adopt(&self, batch: &mut Batch<'_>) {
        batch.adopt_file(self.keyspace, self.number, self.documents_bytes);
    }
}
