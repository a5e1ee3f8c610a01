//! Room for an explanation. A large part asks before it is made; one that does not fit is left out, and a warning stands in
//! its place, as in MongoDB.

use bunko_bson::DocumentBuf;
use bunko_matcher::Filter;
use std::cell::Cell;
use std::ops::{Deref, DerefMut};

/// Most bytes of the explanation that a client asks for, so that the rest of the reply has room.
/// Source: MongoDB 8.2, parameter `internalQueryExplainSizeThresholdBytes`.
pub(crate) const EXPLAINED_BYTES_MAX: usize = 10 << 20;

/// Bytes that an explanation may still take.
pub(crate) struct Room(Cell<usize>);

impl Room {
    pub fn new(bytes: usize) -> Self {
        Self(Cell::new(bytes))
    }

    /// Room for an explanation that a client asks for.
    pub fn of_reply() -> Self {
        Self::new(EXPLAINED_BYTES_MAX)
    }

    pub fn left(&self) -> usize {
        self.0.get()
    }

    /// Counts bytes that are there, as far as there is room for them.
    pub fn count(&self, bytes: usize) {
        self.0.set(self.left().saturating_sub(bytes));
    }
}

/// Facts of a stage or a plan, in the room of their explanation.
pub(crate) struct Facts<'r> {
    document: DocumentBuf,
    room: &'r Room,
    /// Bytes of parts that have been counted.
    counted: usize,
}

impl<'r> Facts<'r> {
    pub fn new(document: DocumentBuf, room: &'r Room) -> Self {
        Self { document, room, counted: 0 }
    }

    /// Counts the small parts too, and gives the facts.
    pub fn into_document(self) -> DocumentBuf {
        self.room.count(self.document.as_ref().len_bytes().saturating_sub(self.counted));
        self.document
    }

    pub fn room_left(&self) -> usize {
        self.room.left()
    }

    /// Adds a part that was made within [`Self::room_left`].
    pub fn append_counted(&mut self, name: &str, part: &DocumentBuf) {
        let bytes = part.as_ref().len_bytes();
        self.room.count(bytes);
        self.counted += bytes;
        self.document.append(name, part);
    }

    /// Adds a document, or a warning in its place.
    pub fn append_large(&mut self, name: &str, part: &DocumentBuf) {
        if part.as_ref().len_bytes() <= self.room.left() {
            self.append_counted(name, part);
        } else {
            self.leave_out(name);
        }
    }

    /// Adds a filter, or a warning in its place.
    pub fn append_filter(&mut self, name: &str, filter: &Filter) {
        self.append_filter_part(name, filter, &|_| true);
    }

    /// Adds those predicates of a filter's outermost conjunction that `is_taken` takes by their positions.
    pub fn append_filter_part(&mut self, name: &str, filter: &Filter, is_taken: &dyn Fn(usize) -> bool) {
        match filter.part_within(is_taken, self.room.left()) {
            Some(part) => self.append_counted(name, &part),
            None => self.leave_out(name),
        }
    }

    fn leave_out(&mut self, name: &str) {
        self.document.append("warning", format!("'{name}' has been omitted due to BSON size limit").as_str());
    }
}

impl Deref for Facts<'_> {
    type Target = DocumentBuf;

    fn deref(&self) -> &DocumentBuf {
        &self.document
    }
}

impl DerefMut for Facts<'_> {
    fn deref_mut(&mut self) -> &mut DocumentBuf {
        &mut self.document
    }
}
