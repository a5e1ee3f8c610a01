//! Tracks which documents of one namespace are acknowledged.

use std::collections::BTreeMap;
use std::ops::Range;

/// Positions are bytes from the beginning of the namespace's first document, counted over documents laid end to end.
///
/// Batches are acknowledged in any order; only the part before the first gap may be recorded as done.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    handed_out: u64,
    /// All bytes before this position are acknowledged.
    contiguous: u64,
    /// Acknowledged stretches after the first gap: start, end.
    ahead: BTreeMap<u64, u64>,
    has_ended: bool,
}

impl Ledger {
    /// Continues at the position that an earlier run reached.
    pub(super) fn resumed_at(position: u64) -> Self {
        Self { contiguous: position, ..Self::default() }
    }

    /// Assigns the next position to documents from the source.
    pub(super) fn hand_out(&mut self, bytes: usize) -> Range<u64> {
        let from = self.handed_out;
        self.handed_out += bytes as u64;
        from..self.handed_out
    }

    /// Marks the end of the source.
    pub(super) fn end(&mut self) {
        self.has_ended = true;
    }

    /// Notes that the server, or an earlier run, has finished this stretch.
    pub(super) fn acknowledge(&mut self, stretch: Range<u64>) {
        if stretch.end <= self.contiguous {
            return;
        }
        if stretch.start > self.contiguous {
            self.ahead.insert(stretch.start, stretch.end);
            return;
        }
        self.contiguous = stretch.end;
        while let Some(next) = self.ahead.first_entry().filter(|next| *next.key() <= self.contiguous) {
            self.contiguous = self.contiguous.max(next.remove());
        }
    }

    /// The position before which all bytes are done.
    pub(super) fn contiguous(&self) -> u64 {
        self.contiguous
    }

    /// Whether all documents are done.
    pub(super) fn is_complete(&self) -> bool {
        self.has_ended && self.contiguous >= self.handed_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_testkit::random::Random;
    use proptest::prelude::*;

    #[test]
    fn an_earlier_run_counts() {
        let mut ledger = Ledger::resumed_at(10);
        let stretch = ledger.hand_out(10);
        ledger.acknowledge(stretch);
        ledger.end();
        assert!(ledger.is_complete());
        assert_eq!(ledger.contiguous(), 10);
    }

    proptest! {
        #[test]
        fn nothing_behind_a_gap_is_done(lengths in proptest::collection::vec(1_usize..50, 1..20), order in any::<u64>()) {
            let mut ledger = Ledger::default();
            let stretches: Vec<_> = lengths.iter().map(|&length| ledger.hand_out(length)).collect();
            ledger.end();
            let mut open: Vec<usize> = (0..stretches.len()).collect();
            let mut random = Random(order);
            while !open.is_empty() {
                prop_assert!(!ledger.is_complete());
                let done = open.swap_remove(random.below(open.len() as u64) as usize);
                ledger.acknowledge(stretches[done].clone());
                let first_open = open.iter().map(|&at| stretches[at].start).min();
                prop_assert_eq!(ledger.contiguous(), first_open.unwrap_or(stretches[stretches.len() - 1].end));
            }
            prop_assert!(ledger.is_complete());
        }
    }
}
