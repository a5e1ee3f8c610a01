//! Finds the ends of records: line ends outside quotes.

use crate::import::cutter::{Cut, Cutter};
use crate::import::options::Separator;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// At the beginning of a value, where a quote may open it.
    ValueStart,
    Plain,
    Quoted,
    /// Behind a quote inside a quoted value: its end, or the first of two.
    Quote,
}

/// State between two blocks of the input.
pub(in crate::import) struct TableCutter {
    separator: u8,
    place: Place,
}

impl TableCutter {
    pub(in crate::import) fn new(separator: Separator) -> Self {
        Self { separator: separator.byte(), place: Place::ValueStart }
    }

    /// Passes bytes up to a record's end; returns the offset after it.
    fn record_end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        loop {
            match self.place {
                Place::Quoted => at += memchr::memchr(b'"', &bytes[at..])?,
                Place::Plain => at += memchr::memchr2(b'\n', self.separator, &bytes[at..])?,
                Place::ValueStart | Place::Quote => {}
            }
            let byte = *bytes.get(at)?;
            at += 1;
            self.place = match (self.place, byte) {
                (Place::ValueStart | Place::Quote, b'"') => Place::Quoted,
                (Place::Quoted, _) => Place::Quote,
                (Place::ValueStart, b' ' | b'\t') if self.separator == b',' => Place::ValueStart,
                (_, b'\n') => {
                    self.place = Place::ValueStart;
                    return Some(at);
                }
                (_, byte) if byte == self.separator => Place::ValueStart,
                _ => Place::Plain,
            };
        }
    }

    /// The end of the first record.
    pub(super) fn first_end(&mut self, bytes: &[u8]) -> Option<usize> {
        self.record_end(bytes)
    }
}

impl Cutter for TableCutter {
    fn advance(&mut self, fresh: &[u8]) -> Cut {
        let (mut at, mut last_end) = (0, None);
        while let Some(length) = self.record_end(&fresh[at..]) {
            at += length;
            last_end = Some(at);
        }
        last_end.map_or(Cut::None, Cut::At)
    }
}
