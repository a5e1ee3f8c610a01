//! Tables as input: CSV as RFC 4180 describes it, and TSV with the same quotes.

mod columns;
mod cutter;
mod date_layout;
mod date_oracle;
mod fields;
#[cfg(test)]
mod tests;
mod types;

pub(super) use columns::Columns;
pub(super) use cutter::TableCutter;

use super::flaw::Flaw;
use super::options::Separator;
use fields::Fields;

/// Length of the first record of a table; `None` if it needs more bytes.
pub(super) fn first_record_length(bytes: &[u8], separator: Separator, is_all: bool) -> Option<usize> {
    let end = TableCutter::new(separator).first_end(bytes);
    end.or_else(|| is_all.then_some(bytes.len()))
}

/// The values of one record, as text.
/// # Errors
/// A misplaced quote.
pub(super) fn read_names(record: &str, separator: Separator) -> Result<Vec<String>, Flaw> {
    let mut fields = Fields::default();
    fields.read(record, 0, separator)?;
    Ok((0..fields.count()).map(|index| fields.get(index).to_owned()).collect())
}

/// The result of reading a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Row {
    /// A document.
    Document,
    /// Nothing: a value in it is not of its column's type, and `--parseGrace skipRow` says so.
    Skipped,
}

/// Reads the records of one chunk.
pub(super) struct TableRecords<'t> {
    text: &'t str,
    at: usize,
    columns: &'t Columns,
    fields: Fields,
}

impl<'t> TableRecords<'t> {
    pub(super) fn new(text: &'t str, columns: &'t Columns) -> Self {
        Self { text, at: 0, columns, fields: Fields::default() }
    }

    /// Appends the next record's document to `out` and returns the record's place in the chunk; `None` at the end.
    /// Empty lines are passed.
    pub(super) fn next(&mut self, out: &mut Vec<u8>) -> Result<Option<(usize, Row)>, Flaw> {
        while let Some(b'\n' | b'\r') = self.text.as_bytes().get(self.at) {
            self.at += 1;
        }
        if self.at == self.text.len() {
            return Ok(None);
        }
        let start = self.at;
        self.at = self.fields.read(self.text, start, self.columns.separator())?;
        let row = self.columns.append(&self.fields, out).map_err(|reason| Flaw::new(start, reason))?;
        Ok(Some((start, row)))
    }
}
