//! Where a table is shown.

use std::io;

/// Whether a program or person still reads the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// The output is open.
    There,
    /// The other end of the pipe is closed.
    Gone,
}

/// The two outputs of a table.
pub trait Screen {
    /// Shows whole lines of the table.
    /// # Errors
    /// If they cannot be written, except to a pipe without a reader.
    fn show(&mut self, lines: &str) -> io::Result<Reader>;

    /// Says a sentence beside the table.
    fn note(&mut self, sentence: &str);

    /// Whether the output still has a reader, for a table that has nothing to show at the moment.
    fn reader(&self) -> Reader;
}
