//! How far the documents of one namespace have come.

use std::collections::BTreeMap;
use std::ops::Range;

/// Positions in a namespace's documents, in bytes from the first one's beginning, laid one behind the other.
///
/// Batches are acknowledged in any order; what may be recorded as done is only what has no gap before it.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    handed_out: u64,
    /// Everything before this is acknowledged.
    contiguous: u64,
    /// Acknowledged stretches behind the first gap: from, to.
    ahead: BTreeMap<u64, u64>,
    has_ended: bool,
}

impl Ledger {
    /// Goes on where an earlier run had come to.
    pub(super) fn resumed_at(position: u64) -> Self {
        Self { contiguous: position, ..Self::default() }
    }

    /// The next documents come out of the source; returns where they stand.
    pub(super) fn hand_out(&mut self, bytes: usize) -> Range<u64> {
        let from = self.handed_out;
        self.handed_out += bytes as u64;
        from..self.handed_out
    }

    /// The source has no more of them.
    pub(super) fn end(&mut self) {
        self.has_ended = true;
    }

    /// The server, or an earlier run, is done with these.
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

    /// Everything before this is done.
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
            let mut random = order;
            while !open.is_empty() {
                prop_assert!(!ledger.is_complete());
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let done = open.swap_remove((random >> 33) as usize % open.len());
                ledger.acknowledge(stretches[done].clone());
                let first_open = open.iter().map(|&at| stretches[at].start).min();
                prop_assert_eq!(ledger.contiguous(), first_open.unwrap_or(stretches[stretches.len() - 1].end));
            }
            prop_assert!(ledger.is_complete());
        }
    }
}
