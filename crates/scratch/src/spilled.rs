//! What went to scratch files, for `explain`.

use std::ops::AddAssign;

/// Counts of one stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spilled {
    /// How often memory was emptied into a file.
    pub spills: u64,
    /// Records that were written.
    pub records: u64,
    /// Bytes that they had in memory.
    pub bytes: u64,
    /// Bytes that they have in files.
    pub stored_bytes: u64,
}

impl AddAssign for Spilled {
    fn add_assign(&mut self, other: Self) {
        self.spills += other.spills;
        self.records += other.records;
        self.bytes += other.bytes;
        self.stored_bytes += other.stored_bytes;
    }
}
