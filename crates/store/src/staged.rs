//! Documents that an engine writes into its files before the log names the files.

use crate::{Batch, KeyspaceId, Location};

/// A file of documents that an engine wrote ahead of the log, durable and seen by no view.
///
/// A batch that [adopts](Staged::adopt) the file comes first; batches that [place](Batch::place_record) its documents
/// follow. Documents that are never placed are dead from the start, and a file that is never adopted is removed when
/// its `Staged` is dropped. The caller must hold the `Staged` until the last batch is committed: up to then the engine
/// leaves the file alone.
pub struct Staged {
    keyspace: KeyspaceId,
    number: u64,
    documents_bytes: u64,
    locations: Vec<Location>,
    _hold: Box<dyn Send>,
}

impl Staged {
    /// For engines: the file's number, the documents' locations in it, and a guard to drop at the end.
    pub fn new(keyspace: KeyspaceId, number: u64, locations: Vec<Location>, hold: Box<dyn Send>) -> Self {
        let documents_bytes = locations.iter().map(|location| u64::from(location.length)).sum();
        Self { keyspace, number, documents_bytes, locations, _hold: hold }
    }

    /// Locations of the documents, in the order in which the documents were given.
    pub fn locations(&self) -> &[Location] {
        &self.locations
    }

    /// Adds to a batch the effect that makes the file the engine's own.
    pub fn adopt(&self, batch: &mut Batch<'_>) {
        batch.adopt_file(self.keyspace, self.number, self.documents_bytes);
    }
}
