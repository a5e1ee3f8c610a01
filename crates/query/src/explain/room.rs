//! Size limit of an explanation. The size of a large part is checked before it is made; a part that does not fit is
//! replaced by a warning, as in MongoDB.

use bunko_bson::DocumentBuf;
use bunko_matcher::Filter;
use std::cell::Cell;
use std::ops::{Deref, DerefMut};

/// Maximum size in bytes of an explanation for a client, so that the rest of the reply has room.
/// Source: MongoDB 8.2, parameter `internalQueryExplainSizeThresholdBytes`.
pub(crate) const EXPLAINED_BYTES_MAX: usize = 10 << 20;

/// Remaining bytes of an explanation.
pub(crate) struct Room(Cell<usize>);

impl Room {
    pub fn new(bytes: usize) -> Self {
        Self(Cell::new(bytes))
    }

    /// The room of an explanation for a client.
    pub fn of_reply() -> Self {
        Self::new(EXPLAINED_BYTES_MAX)
    }

    pub fn left(&self) -> usize {
        self.0.get()
    }

    /// Counts bytes already used, as far as there is room.
    pub fn count(&self, bytes: usize) {
        self.0.set(self.left().saturating_sub(bytes));
    }
}

/// Facts of a stage or a plan, limited by the explanation's room.
pub(crate) struct Facts<'r> {
    document: DocumentBuf,
    room: &'r Room,
    /// Bytes of the parts counted so far.
    counted: usize,
}

impl<'r> Facts<'r> {
    pub fn new(document: DocumentBuf, room: &'r Room) -> Self {
        Self { document, room, counted: 0 }
    }

    /// Counts the remaining small parts too, and returns the facts.
    pub fn into_document(self) -> DocumentBuf {
        self.room.count(self.document.as_ref().len_bytes().saturating_sub(self.counted));
        self.document
    }

    pub fn room_left(&self) -> usize {
        self.room.left()
    }

    /// Appends a part that was made within [`Self::room_left`].
    pub fn append_counted(&mut self, name: &str, part: &DocumentBuf) {
        let bytes = part.as_ref().len_bytes();
        self.room.count(bytes);
        self.counted += bytes;
        self.document.append(name, part);
    }

    /// Appends a document, or a warning if it does not fit.
    pub fn append_large(&mut self, name: &str, part: &DocumentBuf) {
        if part.as_ref().len_bytes() <= self.room.left() {
            self.append_counted(name, part);
        } else {
            self.leave_out(name);
        }
    }

    /// Appends a filter, or a warning if it does not fit.
    pub fn append_filter(&mut self, name: &str, filter: &Filter) {
        self.append_filter_part(name, filter, &|_| true);
    }

    /// Appends part of a filter: the predicates of its top-level conjunction whose positions `is_taken` accepts.
    pub fn append_filter_part(&mut self, name: &str, filter: &Filter, is_taken: &dyn Fn(usize) -> bool) {
        self.append_or_warn(name, filter.part_within(is_taken, self.room.left()));
    }

    /// Appends a filter with the comparisons that each `$expr` implies, or a warning if it does not fit.
    pub fn append_parsed_query(&mut self, name: &str, filter: &Filter) {
        self.append_or_warn(name, filter.parsed_query_within(self.room.left()));
    }

    fn append_or_warn(&mut self, name: &str, part: Option<DocumentBuf>) {
        match part {
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
