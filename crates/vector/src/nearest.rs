//! Keeps the best of many candidates.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// A score with a total order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ordered(pub(crate) f32);

impl Eq for Ordered {}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// The candidates with the greatest scores, up to a limit. Among equal scores, the smaller items stay.
#[derive(Debug)]
pub struct Nearest<T> {
    limit: usize,
    /// The worst candidate is on top.
    kept: BinaryHeap<Reverse<(Ordered, Reverse<T>)>>,
}

impl<T: Ord + Copy> Nearest<T> {
    /// Makes room for `limit` candidates.
    pub fn new(limit: usize) -> Self {
        Self { limit, kept: BinaryHeap::new() }
    }

    /// Offers a candidate, which is kept if it is among the best so far.
    #[inline]
    pub fn offer(&mut self, score: f32, item: T) {
        if self.kept.len() < self.limit {
            self.kept.push(Reverse((Ordered(score), Reverse(item))));
        } else if let Some(mut worst) = self.kept.peek_mut()
            && worst.0 < (Ordered(score), Reverse(item))
        {
            *worst = Reverse((Ordered(score), Reverse(item)));
        }
    }

    /// The least score that is kept; `None` while there is room left.
    #[inline]
    pub fn threshold(&self) -> Option<f32> {
        if self.kept.len() < self.limit { None } else { self.kept.peek().map(|worst| worst.0.0.0) }
    }

    /// The kept candidates, the best first.
    pub fn into_sorted(self) -> Vec<(f32, T)> {
        self.kept.into_sorted_vec().into_iter().map(|Reverse((score, Reverse(item)))| (score.0, item)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_stay_and_of_equal_ones_the_first() {
        let mut nearest = Nearest::new(3);
        for (score, item) in [(0.5, 7), (0.9, 1), (0.5, 2), (0.1, 3), (0.5, 9), (0.7, 4)] {
            nearest.offer(score, item);
        }
        assert_eq!(nearest.threshold(), Some(0.5));
        assert_eq!(nearest.into_sorted(), [(0.9, 1), (0.7, 4), (0.5, 2)]);
        let mut nothing = Nearest::new(0);
        nothing.offer(1.0, 1);
        assert!(nothing.into_sorted().is_empty());
    }
}
