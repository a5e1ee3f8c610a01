//! Records that are written in one order and read in the same, once: on disk from the first one on.

use crate::Spilled;
use crate::record_file::{RecordReader, RecordWriter};
use bunko_errors::Result;
use bunko_operation::OperationContext;

/// Takes records that are read later.
pub struct QueueWriter(RecordWriter);

impl QueueWriter {
    /// Begins a file in the operation's scratch space; `None` if the operation has none.
    /// # Errors
    /// Failures of the file.
    pub fn create(operation: &OperationContext) -> Result<Option<Self>> {
        Ok(RecordWriter::create(operation)?.map(Self))
    }

    /// Adds a record after those that are there.
    /// # Errors
    /// Failures of the file, and `Interrupted` if the operation is killed.
    pub fn add(&mut self, value: &[u8], operation: &OperationContext) -> Result<()> {
        self.0.write(&[], &[value], operation).map(drop)
    }

    /// Ends the input. Returns a reader at its beginning, and the numbers of its records and bytes.
    /// # Errors
    /// Failures of the file.
    pub fn finish(self) -> Result<(RecordReader, Spilled)> {
        let (file, spilled) = self.0.finish()?;
        Ok((file.reader(), Spilled { spills: 1, ..spilled }))
    }
}
