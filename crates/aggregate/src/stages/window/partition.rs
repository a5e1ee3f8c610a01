//! The documents of one partition, in their order.

use super::super::placed::Placed;
use crate::Environment;
use bunko_bson::{DocumentRef, ValueRef};
use bunko_errors::Result;

/// One partition.
pub(super) struct Partition {
    pub(super) documents: Vec<Placed>,
}

impl Partition {
    pub(super) fn document(&self, position: usize) -> DocumentRef<'_> {
        self.documents[position].document.as_ref()
    }

    /// What the document at a position is ordered by, or its first part.
    pub(super) fn sort_value(&self, position: usize) -> ValueRef<'_> {
        self.documents[position].value.as_ref()
    }

    /// The first position from `start` on whose value is as wanted, or the end.
    pub(super) fn first_from(
        &self,
        start: usize,
        is_wanted: impl Fn(ValueRef<'_>) -> bool,
        environment: &Environment,
    ) -> Result<usize> {
        let mut position = start;
        while position < self.documents.len() && !is_wanted(self.sort_value(position)) {
            environment.operation().work(1)?;
            position += 1;
        }
        Ok(position)
    }
}
