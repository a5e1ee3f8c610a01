//! Sorting that can be interrupted.

use crate::OperationContext;
use bunko_errors::Result;
use std::cmp::Ordering;

/// Values sorted between two checks: a few microseconds of work.
const RUN: usize = 256;

impl OperationContext {
    /// Sorts stably. The standard library sorts short runs, because it cannot be interrupted; the runs are merged here.
    /// # Errors
    /// As [`Self::work`].
    pub fn sort_by<T>(&self, mut values: Vec<T>, mut compare: impl FnMut(&T, &T) -> Ordering) -> Result<Vec<T>> {
        self.work(values.len())?;
        if values.len() <= RUN {
            values.sort_by(compare);
            return Ok(values);
        }
        let mut runs = Vec::with_capacity(values.len().div_ceil(RUN));
        let mut values = values.into_iter();
        loop {
            let mut run: Vec<T> = values.by_ref().take(RUN).collect();
            if run.is_empty() {
                break;
            }
            self.work(RUN)?;
            run.sort_by(&mut compare);
            runs.push(run);
        }
        while runs.len() > 1 {
            let mut merged = Vec::with_capacity(runs.len().div_ceil(2));
            let mut pairs = runs.into_iter();
            while let Some(left) = pairs.next() {
                merged.push(match pairs.next() {
                    Some(right) => self.merge(left, right, &mut compare)?,
                    None => left,
                });
            }
            runs = merged;
        }
        Ok(runs.pop().unwrap_or_default())
    }

    fn merge<T>(
        &self,
        mut left: Vec<T>,
        right: Vec<T>,
        compare: &mut impl FnMut(&T, &T) -> Ordering,
    ) -> Result<Vec<T>> {
        // Runs that are already in order are only joined.
        if let (Some(last), Some(first)) = (left.last(), right.first())
            && compare(first, last).is_ge()
        {
            left.extend(right);
            return Ok(left);
        }
        let mut merged = Vec::with_capacity(left.len() + right.len());
        let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            self.work(1)?;
            let next = if compare(b, a).is_lt() { right.next() } else { left.next() };
            merged.extend(next);
        }
        merged.extend(left);
        merged.extend(right);
        Ok(merged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Interruption, MemoryLimits};
    use bunko_errors::{ErrorCode, Failure};
    use std::sync::Arc;

    /// Values with many duplicates, each with its position.
    fn scattered(count: u64) -> Vec<(u64, u64)> {
        (0..count).map(|position| (position.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 100, position)).collect()
    }

    #[test]
    fn equal_values_keep_their_order() {
        let operation = OperationContext::unlimited();
        for count in [0, 1, 2, RUN as u64, RUN as u64 + 1, 3 * RUN as u64, 10_007] {
            let mut expected = scattered(count);
            expected.sort_by_key(|(value, _)| *value);
            let sorted = operation.sort_by(scattered(count), |(a, _), (b, _)| a.cmp(b)).expect("without limits");
            assert_eq!(sorted, expected, "{count}");
        }
    }

    struct Killed;

    impl Interruption for Killed {
        fn reason(&self) -> Option<Failure> {
            Some(Failure::new(ErrorCode::INTERRUPTED, "operation was interrupted"))
        }
    }

    #[test]
    fn a_long_sort_is_interrupted() {
        let operation = OperationContext::new(Arc::new(Killed), MemoryLimits::none());
        assert!(operation.sort_by(scattered(10_000), |(a, _), (b, _)| a.cmp(b)).is_err());
    }
}
