//! How far the commit point is behind this primary's writes, for flow control.

use crate::core::Core;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

/// The least time between two samples, in milliseconds.
const INTERVAL_MS: u64 = 100;
/// Maximum number of samples that are kept. For a longer lag they are further apart.
const SAMPLES_MAX: usize = 600;

/// When the log had reached some ends that are not committed yet. The oldest one is first.
#[derive(Default)]
pub(crate) struct Samples {
    /// Each with the time in milliseconds since the member started.
    uncommitted: VecDeque<(u64, u64)>,
    /// The least time between two of them, in milliseconds.
    interval_ms: u64,
    next_ms: u64,
}

/// A primary's log at a moment.
#[derive(Clone, Copy)]
struct Reached {
    now_ms: u64,
    committed: u64,
    end: u64,
}

impl Samples {
    /// How long ago the primary wrote the first record that is not committed, in milliseconds.
    fn lag_ms(&mut self, at: Reached) -> u64 {
        while self.uncommitted.front().is_some_and(|(_, end)| *end <= at.committed) {
            self.uncommitted.pop_front();
        }
        if self.uncommitted.len() < SAMPLES_MAX / 4 {
            self.interval_ms = (self.interval_ms / 2).max(INTERVAL_MS);
        }
        let is_due = |(taken_ms, end): &(u64, u64)| at.end > *end && at.now_ms >= taken_ms + self.interval_ms;
        if at.end > at.committed && self.uncommitted.back().is_none_or(is_due) {
            if self.uncommitted.len() == SAMPLES_MAX {
                self.thin_out();
            }
            self.uncommitted.push_back((at.now_ms, at.end));
        }
        self.uncommitted.front().map_or(0, |(taken_ms, _)| at.now_ms.saturating_sub(*taken_ms))
    }

    /// Makes one sample of every two, with the earlier time and the later end, so that the lag is not shown too small. If later
    /// samples were left out instead, the lag would seem to be over once the commit point reaches the last one that was kept.
    fn thin_out(&mut self) {
        let pairs = self.uncommitted.make_contiguous().chunks(2);
        self.uncommitted = pairs.map(|pair| (pair[0].0, pair[pair.len() - 1].1)).collect();
        self.interval_ms *= 2;
    }
}

/// Measures how far the commit point is behind, if the last time was a moment ago. It is not behind where it cannot move,
/// because too few members answer: slower writes would not help them.
pub(crate) fn look(core: &Core, samples: &mut Samples) {
    let now_ms = core.now_ms();
    if now_ms < samples.next_ms {
        return;
    }
    samples.next_ms = now_ms + INTERVAL_MS;
    let at = {
        let held = core.held.lock();
        let agreement = &held.agreement;
        let (committed, end) = (agreement.committed(), agreement.position().end);
        agreement.can_commit().then_some(Reached { now_ms, committed, end })
    };
    let lag_ms = match at {
        Some(at) => samples.lag_ms(at),
        None => {
            samples.uncommitted.clear();
            0
        }
    };
    core.commit_lag_ms.store(lag_ms, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lag_is_the_age_of_the_first_record_that_is_not_committed() {
        let mut samples = Samples::default();
        let mut lag_ms = |now_ms, committed, end| samples.lag_ms(Reached { now_ms, committed, end });
        assert_eq!(
            [lag_ms(0, 10, 10), lag_ms(100, 10, 20), lag_ms(200, 10, 30), lag_ms(300, 10, 30)],
            [0, 0, 100, 200]
        );
        // Records that were written by 100 are committed, and later ones are not.
        assert_eq!([lag_ms(400, 20, 40), lag_ms(500, 30, 40), lag_ms(600, 40, 40)], [200, 100, 0]);
        for step in 1..10_000 {
            assert_eq!(lag_ms(1000 + step * 100, 40, 40 + step), (step - 1) * 100);
        }
        assert!(samples.uncommitted.len() <= SAMPLES_MAX);
    }

    #[test]
    fn a_long_lag_is_measured_as_long_as_it_lasts() {
        let mut samples = Samples::default();
        // The log grows by one each millisecond. The commit point follows 100 s behind for ten minutes, and then 2 s.
        for step in 0..8000 {
            let now_ms = step * INTERVAL_MS;
            let behind_ms = if step < 6000 { 100_000 } else { 2000 };
            let lag_ms = samples.lag_ms(Reached { now_ms, committed: now_ms.saturating_sub(behind_ms), end: now_ms });
            assert!(samples.uncommitted.len() <= SAMPLES_MAX);
            let lag_expected_ms = behind_ms.min(now_ms);
            // After the change, samples are closer together again a moment later.
            if !(6000..6100).contains(&step) {
                assert!(lag_ms.abs_diff(lag_expected_ms) <= 1000, "{lag_ms} instead of {lag_expected_ms} at {now_ms}");
            }
        }
    }
}
