//! A document and where it stands in the log, or would stand if there were one.

use bunko_store::Location;
use std::sync::Arc;

/// A document that may be lent to cursors after its record has gone.
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
