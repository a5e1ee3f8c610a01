//! A document and its location in the log; without a log, the location that it would have.

use bunko_store::Location;
use std::sync::Arc;

/// A document, which cursors may still lend after its record was removed.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    bytes: Arc<[u8]>,
    position: u64,
    checksum: u32,
}

impl Document {
    pub fn new(bytes: &[u8], location: Location) -> Self {
        Self { bytes: Arc::from(bytes), position: location.position, checksum: location.checksum }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn location(&self) -> Location {
        Location { position: self.position, length: self.bytes.len() as u32, checksum: self.checksum }
    }
}
