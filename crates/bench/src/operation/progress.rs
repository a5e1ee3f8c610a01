//! State that a phase's threads share: the remaining work, and the progress of inserts.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Numbers that threads take in turn, each once.
#[derive(Debug)]
pub(crate) struct Budget {
    next: AtomicU64,
    end: u64,
}

impl Budget {
    /// The numbers below `end`.
    pub fn new(end: u64) -> Self {
        Self { next: AtomicU64::new(0), end }
    }

    /// Takes up to `count` numbers; `None` when none are left.
    pub fn take(&self, count: u64) -> Option<Range<u64>> {
        let first = self.next.fetch_add(count, Ordering::Relaxed);
        (first < self.end).then(|| first..(first + count).min(self.end))
    }
}

/// A generator's share of the work: it inserts document `index` of every `count` documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub index: u64,
    pub count: u64,
}

impl Share {
    /// Size of this generator's share of `total`.
    pub fn of(self, total: u64) -> u64 {
        total / self.count + u64::from(self.index < total % self.count)
    }

    /// Place of this generator's `number`-th document among those of all generators.
    pub fn place(self, number: u64) -> u64 {
        number * self.count + self.index
    }
}

/// Tracks the documents of the dataset that are in the collection.
///
/// All documents below `base` are in the collection. This generator inserts its share of the others; a document may be read once it
/// and all documents before it in the share are acknowledged.
#[derive(Debug)]
pub(crate) struct Insertions {
    base: u64,
    share: Share,
    /// Maximum number of documents of the share that may be inserted.
    limit: u64,
    issued: AtomicU64,
    /// All numbers below it are acknowledged.
    acknowledged: AtomicU64,
    acknowledged_total: AtomicU64,
    ahead: Mutex<BTreeSet<u64>>,
}

impl Insertions {
    /// `base` documents exist; the first `issued` documents of the share exist too, and the share goes up to `limit`.
    pub fn new(base: u64, issued: u64, limit: u64, share: Share) -> Self {
        Self {
            base,
            share,
            limit,
            issued: AtomicU64::new(issued),
            acknowledged: AtomicU64::new(issued),
            acknowledged_total: AtomicU64::new(0),
            ahead: Mutex::default(),
        }
    }

    /// Takes the numbers, in this share, of the next documents to insert.
    pub fn take(&self, count: u64) -> Option<Range<u64>> {
        let first = self.issued.fetch_add(count, Ordering::Relaxed);
        (first < self.limit).then(|| first..(first + count).min(self.limit))
    }

    /// Place in the dataset of a number in the share, for documents above `base`.
    pub fn index(&self, number: u64) -> u64 {
        self.base + self.share.place(number)
    }

    /// Place in the dataset of a number in the share, if generators divide existing documents among them.
    pub fn of_share(&self, number: u64) -> u64 {
        self.share.place(number)
    }

    /// Notes numbers whose insertion was acknowledged.
    pub fn acknowledge(&self, numbers: Range<u64>) {
        self.acknowledged_total.fetch_add(numbers.end - numbers.start, Ordering::Relaxed);
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        let mut watermark = self.acknowledged.load(Ordering::Relaxed);
        ahead.extend(numbers);
        while ahead.remove(&watermark) {
            watermark += 1;
        }
        self.acknowledged.store(watermark, Ordering::Release);
    }

    /// Number of acknowledged insertions.
    pub fn acknowledged_total(&self) -> u64 {
        self.acknowledged_total.load(Ordering::Relaxed)
    }

    /// Number of documents that were taken.
    pub fn issued(&self) -> u64 {
        self.issued.load(Ordering::Relaxed).min(self.limit)
    }

    /// Number of documents that may be read; [`Self::readable`] gives their places.
    pub fn readable_count(&self) -> u64 {
        self.base + self.acknowledged.load(Ordering::Acquire)
    }

    /// The place in the dataset of the `number`-th readable document.
    pub fn readable(&self, number: u64) -> u64 {
        if number < self.base { number } else { self.index(number - self.base) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_given_out_once() {
        let budget = Budget::new(10);
        assert_eq!(
            [budget.take(4), budget.take(4), budget.take(4), budget.take(4)],
            [Some(0..4), Some(4..8), Some(8..10), None]
        );
    }

    #[test]
    fn documents_are_readable_once_all_before_them_are_there() {
        let insertions = Insertions::new(100, 0, 50, Share { index: 1, count: 4 });
        assert_eq!((insertions.take(2), insertions.take(1)), (Some(0..2), Some(2..3)));
        insertions.acknowledge(2..3);
        assert_eq!(insertions.readable_count(), 100);
        insertions.acknowledge(0..2);
        assert_eq!(insertions.readable_count(), 103);
        assert_eq!([0, 1, 2].map(|number| insertions.of_share(number)), [1, 5, 9]);
        assert_eq!([99, 100, 102].map(|number| insertions.readable(number)), [99, 101, 109]);
    }

    #[test]
    fn shares_add_up() {
        let shares = (0..4).map(|index| Share { index, count: 4 }.of(10));
        assert_eq!(shares.collect::<Vec<_>>(), [3, 3, 2, 2]);
    }
}
