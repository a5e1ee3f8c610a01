//! Walks all documents of an extent.

use super::{Block, Extent, Held};
use bunko_store::{KeyspaceId, Result};

/// Walks an extent's documents by keyspace and log position, one decoded block at a time.
pub(crate) struct ExtentWalk<'e> {
    extent: &'e Extent,
    rest: Vec<(usize, KeyspaceId)>,
    block: Option<(KeyspaceId, Block)>,
    next: usize,
}

impl<'e> ExtentWalk<'e> {
    /// A walk at the first document.
    pub fn new(extent: &'e Extent) -> Result<Self> {
        let mut rest: Vec<_> = extent.blocks().collect();
        rest.reverse();
        let mut walk = Self { extent, rest, block: None, next: 0 };
        walk.next_block()?;
        Ok(walk)
    }

    fn next_block(&mut self) -> Result<()> {
        self.next = 0;
        self.block = match self.rest.pop() {
            Some((number, keyspace)) => Some((keyspace, self.extent.read_block(number)?)),
            None => None,
        };
        Ok(())
    }

    /// Keyspace and log position of the next document; `None` at the end.
    pub fn place(&self) -> Option<(KeyspaceId, u64)> {
        self.current().map(|(keyspace, held)| (keyspace, held.position))
    }

    /// The next document; `None` at the end.
    pub fn current(&self) -> Option<(KeyspaceId, Held<'_>)> {
        let (keyspace, block) = self.block.as_ref()?;
        Some((*keyspace, block.get(self.next)?))
    }

    /// Steps over the next document.
    pub fn advance(&mut self) -> Result<()> {
        self.next += 1;
        if self.current().is_none() { self.next_block() } else { Ok(()) }
    }
}
