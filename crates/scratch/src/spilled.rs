//! Statistics of scratch files, for `explain`.

use std::ops::AddAssign;

/// Counters of one stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spilled {
    /// Times that memory was spilled to a file.
    pub spills: u64,
    /// Records written.
    pub records: u64,
    /// Bytes of these records in memory.
    pub bytes: u64,
    /// Bytes of these records in files, after compression.
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
