//! A command with an ObjectId in it, encoded once and patched for every request.

use bunko_bson::{DocumentBuf, DocumentRef, ObjectId};

/// Stands in the command where the id goes; nothing else in a command has these twelve bytes.
pub(super) const PLACEHOLDER: ObjectId = ObjectId(*b"\xfe\xedplaceholde");

pub(super) struct IdTemplate {
    bytes: Vec<u8>,
    id_at: usize,
}

impl IdTemplate {
    /// # Panics
    /// When [`PLACEHOLDER`] is not in the command.
    pub fn new(command: DocumentBuf) -> Self {
        let bytes = command.into_bytes();
        let id_at = bytes.windows(12).position(|window| window == PLACEHOLDER.0).expect("a placeholder");
        Self { bytes, id_at }
    }

    /// The command about the document with that id.
    pub fn about(&mut self, id: ObjectId) -> DocumentRef<'_> {
        self.bytes[self.id_at..self.id_at + 12].copy_from_slice(&id.0);
        DocumentRef::trusted(&self.bytes)
    }
}
