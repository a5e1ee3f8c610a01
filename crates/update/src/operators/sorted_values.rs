//! Sorted values, for finding equal ones quickly.

use bunko_bson::{ArrayRef, StringOrder, ValueRef};

/// The values of an array, each with its position in the array.
pub(super) struct SortedValues<'v> {
    values: Vec<(ValueRef<'v>, usize)>,
    strings: &'v StringOrder,
}

impl<'v> SortedValues<'v> {
    pub fn new(array: ArrayRef<'v>, strings: &'v StringOrder) -> Self {
        let mut values: Vec<_> = array.iter().enumerate().map(|(position, value)| (value, position)).collect();
        values.sort_by(|(a, _), (b, _)| strings.compare(*a, *b));
        Self { values, strings }
    }

    /// Bytes for sorting `count` values: the list may double while it grows, or is sorted with a copy.
    pub fn bytes_of(count: usize) -> usize {
        2 * count * size_of::<(ValueRef<'_>, usize)>()
    }

    /// Positions of distinct values; of equal values only the first counts.
    pub fn distinct(mut self) -> Vec<usize> {
        self.values.dedup_by(|(later, _), (first, _)| self.strings.equal(*later, *first));
        let mut positions: Vec<_> = self.values.into_iter().map(|(_, position)| position).collect();
        positions.sort_unstable();
        positions
    }

    /// Finds the position of a value equal to `sought`.
    pub fn find(&self, sought: ValueRef<'_>) -> Option<usize> {
        let found = self.values.binary_search_by(|(value, _)| self.strings.compare(*value, sought));
        found.ok().map(|place| self.values[place].1)
    }
}
