//! Walks the blocks of consecutive tables.

use crate::blocks::{BlockPlace, Blocks};
use bunko_store::Result;
use lsm_tree::Table;

/// Tables of one run, in the order of their keys.
pub(crate) struct TableRun {
    tables: Vec<Table>,
    /// Index of the present table; `place` is the position in it.
    at: usize,
    pub place: Option<BlockPlace>,
}

impl TableRun {
    /// A position before the first table.
    pub fn new(tables: Vec<Table>) -> Self {
        Self { tables, at: 0, place: None }
    }

    /// A new position before the first table.
    pub fn again(&self) -> Self {
        Self::new(self.tables.clone())
    }

    /// Goes to the first block that may have `start` or a later key; returns whether there is one. `start` is in the
    /// tree's form, and must not be smaller than any key sought before.
    pub fn seek(&mut self, blocks: &Blocks, start: &[u8]) -> Result<bool> {
        while let Some(table) = self.tables.get(self.at) {
            if &**table.metadata.key_range.max() < start {
                (self.at, self.place) = (self.at + 1, None);
                continue;
            }
            match &mut self.place {
                Some(place) => return place.seek(blocks, start),
                None => self.place = Some(BlockPlace::first(blocks, table.clone())?),
            }
        }
        Ok(false)
    }

    /// Goes to the next block; returns whether there is one.
    pub fn advance(&mut self, blocks: &Blocks) -> Result<bool> {
        if let Some(place) = &mut self.place
            && place.advance(blocks)?
        {
            return Ok(true);
        }
        let Some(table) = self.tables.get(self.at + 1) else { return Ok(false) };
        self.place = Some(BlockPlace::first(blocks, table.clone())?);
        self.at += 1;
        Ok(true)
    }
}
