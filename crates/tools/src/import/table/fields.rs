//! Splits a record into values.
//!
//! Source: RFC 4180, section 2.

use crate::import::flaw::Flaw;
use crate::import::options::Separator;
use std::ops::Range;

/// The values of one record. The buffers serve the next record again.
#[derive(Debug, Default)]
pub(super) struct Fields {
    text: String,
    ranges: Vec<Range<usize>>,
}

impl Fields {
    pub(super) fn count(&self) -> usize {
        self.ranges.len()
    }

    pub(super) fn get(&self, index: usize) -> &str {
        &self.text[self.ranges[index].clone()]
    }

    /// Reads the record at `at`; returns the offset after its line end.
    pub(super) fn read(&mut self, text: &str, mut at: usize, separator: Separator) -> Result<usize, Flaw> {
        self.text.clear();
        self.ranges.clear();
        let bytes = text.as_bytes();
        loop {
            if separator == Separator::Comma {
                // As mongoimport does: `1, 2` has the numbers 1 and 2.
                at += bytes[at..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
            }
            let begin = self.text.len();
            let end = if bytes.get(at) == Some(&b'"') {
                self.quoted(text, at, separator)?
            } else {
                let end = at + plain_length(&bytes[at..], separator);
                if let Some(quote) = memchr::memchr(b'"', &bytes[at..end]).filter(|_| separator == Separator::Comma) {
                    let reason = "a quote inside a value that does not begin with one; such a value is written \"a \"\"b\"\" c\"";
                    return Err(Flaw::new(at + quote, reason));
                }
                self.text.push_str(&text[at..end]);
                end
            };
            self.ranges.push(begin..self.text.len());
            match bytes.get(end) {
                Some(&byte) if byte == separator.byte() => at = end + 1,
                Some(b'\r') => return Ok(end + 2),
                Some(_) => return Ok(end + 1),
                None => return Ok(end),
            }
        }
    }

    /// Reads a quoted value; returns the offset after its closing quote, where a separator, a line end or the end of
    /// the text must be.
    fn quoted(&mut self, text: &str, start: usize, separator: Separator) -> Result<usize, Flaw> {
        let bytes = text.as_bytes();
        let mut at = start + 1;
        loop {
            let Some(length) = memchr::memchr(b'"', &bytes[at..]) else {
                return Err(Flaw::at_end(start, "the quote that opens here is not closed"));
            };
            self.text.push_str(&text[at..at + length]);
            at += length + 1;
            if bytes.get(at) != Some(&b'"') {
                break;
            }
            self.text.push('"');
            at += 1;
        }
        match &bytes[at..] {
            [] | [b'\n', ..] | [b'\r', b'\n', ..] => Ok(at),
            [byte, ..] if *byte == separator.byte() => Ok(at),
            _ => Err(Flaw::expected("a separator or a line end after a closing quote", text, at)),
        }
    }
}

/// Length of a value without quotes; a carriage return belongs to the line end after it.
fn plain_length(bytes: &[u8], separator: Separator) -> usize {
    match memchr::memchr2(separator.byte(), b'\n', bytes) {
        Some(end) if bytes[end] == b'\n' && end > 0 && bytes[end - 1] == b'\r' => end - 1,
        Some(end) => end,
        None => bytes.len(),
    }
}
