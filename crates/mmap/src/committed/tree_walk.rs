//! Walks a tree from key to key.

use super::Committed;
use crate::page::{Kind, Slot};
use crate::tree::Tree;
use bunko_store::{Direction, Result};
use std::ops::Bound;

/// A walk over a range of a tree's keys. All pages that it visits are checked for order and completeness.
pub(crate) struct TreeWalk {
    tree: Tree,
    range: (Bound<Vec<u8>>, Bound<Vec<u8>>),
    direction: Direction,
    stage: Stage,
    /// Positions from the root to the leaf.
    path: Vec<Slot>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Start,
    Within,
    End,
}

impl TreeWalk {
    pub fn new(tree: Tree, range: (Bound<Vec<u8>>, Bound<Vec<u8>>), direction: Direction) -> Self {
        let stage = if tree.depth == 0 { Stage::End } else { Stage::Start };
        Self { tree, range, direction, stage, path: Vec::with_capacity(usize::from(tree.depth)) }
    }

    /// The next entry's position; `None` at the end.
    pub fn next(&mut self, committed: &Committed) -> Result<Option<Slot>> {
        match self.stage {
            Stage::Start => {
                self.stage = Stage::Within;
                self.seek(committed)?;
            }
            Stage::Within => self.step(committed)?,
            Stage::End => return Ok(None),
        }
        let slot = self.path.last().copied();
        if let Some(slot) = slot
            && !self.is_past_end(committed, slot)?
        {
            return Ok(Some(slot));
        }
        self.stage = Stage::End;
        Ok(None)
    }

    fn is_past_end(&self, committed: &Committed, slot: Slot) -> Result<bool> {
        let end = match self.direction {
            Direction::Forward => &self.range.1,
            Direction::Backward => &self.range.0,
        };
        let (Bound::Included(bound) | Bound::Excluded(bound)) = end else { return Ok(false) };
        let leaf = committed.page(slot.page, Kind::Leaf)?;
        let key = committed.read(slot.page, leaf.key(slot.index))?;
        let order = match self.direction {
            Direction::Forward => key.cmp(bound),
            Direction::Backward => bound.as_slice().cmp(key),
        };
        Ok(order.is_gt() || order.is_eq() && matches!(end, Bound::Excluded(_)))
    }

    /// Goes to the first entry of the range.
    fn seek(&mut self, committed: &Committed) -> Result<()> {
        let start = match self.direction {
            Direction::Forward => self.range.0.clone(),
            Direction::Backward => self.range.1.clone(),
        };
        let (Bound::Included(key) | Bound::Excluded(key)) = &start else {
            return self.descend(committed, self.tree.root);
        };
        let mut page = self.tree.root;
        for _ in 1..self.tree.depth {
            let branch = committed.checked_page(page, Kind::Branch, self.tree.order)?;
            let index = committed.read(page, branch.child_of(key))?;
            self.path.push(Slot { page, index });
            page = committed.read(page, branch.child(index))?;
        }
        let leaf = committed.checked_page(page, Kind::Leaf, self.tree.order)?;
        let found = committed.read(page, leaf.search(key))?;
        // Index of the entry at which the walk begins; with `is_beyond`, of the entry from which it must first step on,
        // because the start is excluded or beyond the leaf's edge.
        let (index, is_beyond) = match (self.direction, found) {
            (_, Ok(index)) => (index, matches!(start, Bound::Excluded(_))),
            (Direction::Forward, Err(index)) if index == leaf.len() => (index - 1, true),
            (Direction::Forward, Err(index)) => (index, false),
            (Direction::Backward, Err(0)) => (0, true),
            (Direction::Backward, Err(index)) => (index - 1, false),
        };
        self.path.push(Slot { page, index });
        if is_beyond { self.step(committed) } else { Ok(()) }
    }

    /// Goes down from a page to the first leaf in walking order.
    fn descend(&mut self, committed: &Committed, mut page: u64) -> Result<()> {
        let depth = usize::from(self.tree.depth);
        loop {
            let kind = if self.path.len() + 1 == depth { Kind::Leaf } else { Kind::Branch };
            let found = committed.checked_page(page, kind, self.tree.order)?;
            let index = match self.direction {
                Direction::Forward => 0,
                Direction::Backward => found.len() - 1,
            };
            self.path.push(Slot { page, index });
            if kind == Kind::Leaf {
                return Ok(());
            }
            page = committed.read(page, found.child(index))?;
        }
    }

    /// Goes to the next entry; the path is empty if there is none.
    fn step(&mut self, committed: &Committed) -> Result<()> {
        let left = self.path.last().copied();
        let mut kind = Kind::Leaf;
        while let Some(mut slot) = self.path.pop() {
            let page = committed.page(slot.page, kind)?;
            let next = match self.direction {
                Direction::Forward => Some(slot.index + 1).filter(|next| *next < page.len()),
                Direction::Backward => slot.index.checked_sub(1),
            };
            if let Some(next) = next {
                slot.index = next;
                self.path.push(slot);
                if kind == Kind::Branch {
                    let child = committed.read(slot.page, page.child(next))?;
                    self.descend(committed, child)?;
                    self.check_order(committed, left)?;
                }
                return Ok(());
            }
            kind = Kind::Branch;
        }
        Ok(())
    }

    /// Checks that a new leaf continues where the last one ended.
    fn check_order(&self, committed: &Committed, left: Option<Slot>) -> Result<()> {
        let (Some(left), Some(reached)) = (left, self.path.last()) else { return Ok(()) };
        let key = |slot: Slot| {
            committed.page(slot.page, Kind::Leaf).and_then(|leaf| committed.read(slot.page, leaf.key(slot.index)))
        };
        let order = self.tree.order.compare(key(left)?, key(*reached)?);
        let is_in_order = match self.direction {
            Direction::Forward => order.is_lt(),
            Direction::Backward => order.is_gt(),
        };
        if is_in_order {
            return Ok(());
        }
        let page_bytes = committed.file.page_bytes as u64;
        Err(committed.file.corrupt(reached.page.saturating_mul(page_bytes), "a leaf out of order"))
    }
}
