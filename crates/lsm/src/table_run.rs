//! Going through the blocks of tables that follow each other.

use crate::blocks::{BlockPlace, Blocks};
use bunko_store::Result;
use lsm_tree::Table;

/// Tables of one run, in the order of their keys.
pub(crate) struct TableRun {
    tables: Vec<Table>,
    /// The one that the walk has come to, and the place in it.
    at: usize,
    pub place: Option<BlockPlace>,
}

impl TableRun {
    /// Before the first of the tables.
    pub fn new(tables: Vec<Table>) -> Self {
        Self { tables, at: 0, place: None }
    }

    /// Before the first of the tables again.
    pub fn again(&self) -> Self {
        Self::new(self.tables.clone())
    }

    /// Goes to the first block in which a key may be that is not before `start`, which has the tree's form and is not before
    /// any that was sought before; whether there is one.
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

    /// Goes to the next block; whether there is one.
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
