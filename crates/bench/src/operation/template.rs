//! A command encoded once and patched for every request.

use super::Assignment;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef};
use bunko_dataset::Id;

/// A command with placeholders: ids of one kind, and at most one other value of fixed length.
pub(super) struct Template {
    bytes: Vec<u8>,
    ids_at: Vec<usize>,
    value_at: Option<usize>,
}

impl Template {
    /// A find of the given number of documents by their `_id`s, all in one batch.
    pub fn find_in(assignment: &Assignment<'_>, ids: u64) -> Self {
        let placeholder = Id::placeholder(assignment.dataset.id(0).kind());
        let wanted: ArrayBuf = (0..ids).map(|_| placeholder.as_value()).collect();
        let filter = DocumentBuf::new().with("_id", &DocumentBuf::new().with("$in", &wanted));
        let command = DocumentBuf::new()
            .with("find", assignment.collection)
            .with("filter", &filter)
            // A batch that is exactly full leaves the cursor open, which would need another request.
            .with("batchSize", ids as i32 + 1)
            .with("$db", assignment.database);
        Self::new(command, &placeholder)
    }

    /// Finds every occurrence of `placeholder`'s payload.
    /// # Panics
    /// If there is none: the caller builds the command.
    pub fn new(command: DocumentBuf, placeholder: &Id) -> Self {
        let bytes = command.into_bytes();
        let ids_at = occurrences(&bytes, placeholder.payload());
        assert!(!ids_at.is_empty(), "a command template has a placeholder");
        Self { bytes, ids_at, value_at: None }
    }

    /// A command without document ids.
    pub fn without_ids(command: DocumentBuf) -> Self {
        Self { bytes: command.into_bytes(), ids_at: Vec::new(), value_at: None }
    }

    /// Adds a placeholder for a value whose payload in the command is `payload`.
    /// # Panics
    /// If the payload does not occur exactly once.
    pub fn with_value(mut self, payload: &[u8]) -> Self {
        let found = occurrences(&self.bytes, payload);
        assert_eq!(found.len(), 1, "a command template has one value");
        self.value_at = found.first().copied();
        self
    }

    /// Writes `id` to the `place`-th placeholder.
    pub fn set_id(&mut self, place: usize, id: &Id) -> &mut Self {
        let at = self.ids_at[place];
        let payload = id.payload();
        self.bytes[at..at + payload.len()].copy_from_slice(payload);
        self
    }

    /// The bytes of the value's payload.
    pub fn value(&mut self, bytes: usize) -> &mut [u8] {
        let at = self.value_at.unwrap_or(0);
        &mut self.bytes[at..at + bytes]
    }

    /// The command with its present values.
    pub fn command(&self) -> DocumentRef<'_> {
        DocumentRef::trusted(&self.bytes)
    }
}

fn occurrences(bytes: &[u8], wanted: &[u8]) -> Vec<usize> {
    let windows = bytes.windows(wanted.len()).enumerate();
    windows.filter(|(_, window)| *window == wanted).map(|(at, _)| at).collect()
}
