//! Records spread over files by their hash, each file in the order of the input.
//!
//! A stage that gathers by key needs no order among keys, only all records of one key together: parting them costs no
//! sorting, and records of one key stay in their order, so that what is made of them is the same as in memory.

use crate::Spilled;
use crate::record_file::{RecordReader, RecordWriter};
use bunko_errors::Result;
use bunko_operation::OperationContext;

/// How many files there are at most. One that is too large is parted again by other bits of the hash.
pub const PARTITIONS: usize = 16;
const BITS: u32 = PARTITIONS.trailing_zeros();

/// Files for the records of one level.
pub struct Partitions {
    files: [Option<RecordWriter>; PARTITIONS],
    level: u32,
}

impl Partitions {
    /// The last level: a hash has no more bits.
    pub const LEVEL_MAX: u32 = u64::BITS / BITS - 1;

    /// Parts by the bits of a level; no file is made yet.
    pub fn new(level: u32) -> Self {
        Self { files: [const { None }; PARTITIONS], level }
    }

    /// Which of them a hash belongs to.
    pub fn partition_of(&self, hash: u64) -> usize {
        (hash >> (u64::BITS - BITS * (self.level + 1))) as usize % PARTITIONS
    }

    /// Adds a record, whose value comes in parts; whether there was room for it: there is none without scratch space.
    /// # Errors
    /// What files fail with, what the operation says.
    pub fn add(&mut self, hash: u64, key: &[u8], value: &[&[u8]], operation: &OperationContext) -> Result<bool> {
        let file = &mut self.files[self.partition_of(hash)];
        if file.is_none() {
            *file = RecordWriter::create(operation)?;
        }
        let Some(file) = file else { return Ok(false) };
        file.write(key, value, operation)?;
        Ok(true)
    }

    /// What was added, by partition, and what it takes.
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
