//! Values in order, among which equal ones are found fast.

use bunko_bson::{ArrayRef, ValueRef, order};

/// The values of an array, each with its position there.
pub(super) struct SortedValues<'v>(Vec<(ValueRef<'v>, usize)>);

impl<'v> SortedValues<'v> {
    pub fn new(array: ArrayRef<'v>) -> Self {
        let mut values: Vec<_> = array.iter().enumerate().map(|(position, value)| (value, position)).collect();
        values.sort_by(|(a, _), (b, _)| order::compare(*a, *b));
        Self(values)
    }

    /// Positions of the values, of equal ones only the first.
    pub fn distinct(mut self) -> Vec<usize> {
        self.0.dedup_by(|(later, _), (first, _)| order::equal(*later, *first));
        let mut positions: Vec<_> = self.0.into_iter().map(|(_, position)| position).collect();
        positions.sort_unstable();
        positions
    }

    /// The position of a value equal to that one.
    pub fn find(&self, sought: ValueRef<'_>) -> Option<usize> {
        let found = self.0.binary_search_by(|(value, _)| order::compare(*value, sought));
        found.ok().map(|place| self.0[place].1)
    }
}
