//! Records spread over files by hash; each file is in order of arrival.
//!
//! A stage that gathers by key needs no order of keys, only all records of a key together. Partitioning them costs no
//! sorting. The records of a key stay in order, so results are equal to those computed in memory.

use crate::Spilled;
use crate::record_file::{RecordReader, RecordWriter};
use bunko_errors::Result;
use bunko_operation::OperationContext;

/// Maximum number of files. A file that is too large is partitioned again by other bits of the hash.
pub const PARTITIONS: usize = 16;
const BITS: u32 = PARTITIONS.trailing_zeros();

/// Files for the records of one level.
pub struct Partitions {
    files: [Option<RecordWriter>; PARTITIONS],
    level: u32,
}

impl Partitions {
    /// The last level: the hash has no more bits.
    pub const LEVEL_MAX: u32 = u64::BITS / BITS - 1;

    /// Partitions by the bits of a level. Files are created on demand.
    pub fn new(level: u32) -> Self {
        Self { files: [const { None }; PARTITIONS], level }
    }

    /// The partition of a hash.
    pub fn partition_of(&self, hash: u64) -> usize {
        (hash >> (u64::BITS - BITS * (self.level + 1))) as usize % PARTITIONS
    }

    /// Appends a record, whose value is given in parts. Returns `false` if there is no scratch space.
    /// # Errors
    /// Errors of files and of counting work.
    pub fn add(&mut self, hash: u64, key: &[u8], value: &[&[u8]], operation: &OperationContext) -> Result<bool> {
        let file = &mut self.files[self.partition_of(hash)];
        if file.is_none() {
            *file = RecordWriter::create(operation)?;
        }
        let Some(file) = file else { return Ok(false) };
        file.write(key, value, operation)?;
        Ok(true)
    }

    /// Ends all files. Returns a reader for each partition, `None` for one without records, and the statistics.
    /// # Errors
    /// As [`Self::add`].
    pub fn finish(self) -> Result<([Option<RecordReader>; PARTITIONS], Spilled)> {
        let (mut readers, mut spilled) = ([const { None }; PARTITIONS], Spilled::default());
        for (file, reader) in self.files.into_iter().zip(&mut readers) {
            let Some(file) = file else { continue };
            let (file, written) = file.finish()?;
            spilled += Spilled { spills: 1, ..written };
            *reader = Some(file.reader());
        }
        Ok((readers, spilled))
    }
}
