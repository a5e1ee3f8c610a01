//! Finds places to cut the input: between two records.

/// The result of a look at a block of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// No record ends in the block.
    None,
    /// The last record that ends in the block ends in front of this offset.
    At(usize),
    /// The byte at this offset cannot stand there; nothing after it can be read.
    Broken(usize),
}

/// Looks for the ends of records, block after block.
pub(super) trait Cutter: Send {
    /// Looks at the next block. Whole blocks follow each other without gaps.
    fn advance(&mut self, fresh: &[u8]) -> Cut;
}
