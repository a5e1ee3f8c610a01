//! JSON as input: a row of documents, or one array of them, in both versions of Extended JSON.

mod cutter;
mod number;
mod parser;
mod strings;
#[cfg(test)]
mod tests;
mod wrapper;

pub(super) use cutter::JsonCutter;

use super::flaw::Flaw;
use super::options::JsonForm;
use parser::Parser;

/// The place of a chunk in its input, which decides which punctuation it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ends {
    /// Whether the chunk begins with the input's first document.
    pub is_first: bool,
    /// Whether nothing follows the chunk.
    pub is_last: bool,
}

/// Reads the documents of one chunk.
pub(super) struct JsonDocuments<'t> {
    parser: Parser<'t>,
    form: JsonForm,
    ends: Ends,
    /// Whether a document has been read, so that a comma comes before the next.
    is_begun: bool,
}

impl<'t> JsonDocuments<'t> {
    pub(super) fn new(text: &'t str, form: JsonForm, ends: Ends) -> Self {
        Self { parser: Parser::new(text), form, ends, is_begun: false }
    }

    /// Appends the next document to `out` and returns its place in the chunk; `None` at the end.
    pub(super) fn next(&mut self, out: &mut Vec<u8>) -> Result<Option<usize>, Flaw> {
        if self.form == JsonForm::Array {
            if self.is_at_end()? {
                return Ok(None);
            }
            self.comma()?;
        } else if self.parser.peek().is_none() {
            return Ok(None);
        }
        let start = self.parser.position();
        self.parser.document(out)?;
        self.is_begun = true;
        Ok(Some(start))
    }

    /// Whether an array's chunk holds no more documents. In the last chunk, fails if the array is not closed, or if
    /// anything follows it.
    fn is_at_end(&mut self) -> Result<bool, Flaw> {
        if self.ends.is_last && self.parser.take(b']') {
            return match self.parser.peek() {
                None => Ok(true),
                Some(_) => Err(self.parser.expected("nothing after the array")),
            };
        }
        match self.parser.peek() {
            None if self.ends.is_last => Err(self.parser.expected("']', because the array is not closed")),
            next => Ok(next.is_none()),
        }
    }

    fn comma(&mut self) -> Result<(), Flaw> {
        let is_needed = self.is_begun || !self.ends.is_first;
        if is_needed && !self.parser.take(b',') { Err(self.parser.expected("',' or ']'")) } else { Ok(()) }
    }
}
