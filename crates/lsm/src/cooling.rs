//! What was written of late is not moved yet: where documents are changed over and over, those of a segment are soon
//! dead, and nothing of it has to be moved at all.

use bunko_store::{Haste, SEGMENT_BYTES};
use rustc_hash::FxHashMap;
use std::time::{Duration, Instant};

/// How long a full segment is left alone.
const COOLING: Duration = Duration::from_secs(20);
/// Most segments that are left alone at once: what waits uncompressed is bounded.
const COOLING_SEGMENTS_MAX: usize = 16;
/// The same in bytes of the log: 1 GiB.
pub const COOLING_BYTES_MAX: u64 = COOLING_SEGMENTS_MAX as u64 * SEGMENT_BYTES;

/// Segments from which on who moves must not fall further behind: one waits while another is moved.
const FULL_SEGMENTS_USUAL: usize = COOLING_SEGMENTS_MAX + 2;
/// Segments from which on no cold one may wait longer: writers are faster than who moves.
const FULL_SEGMENTS_MAX: usize = COOLING_SEGMENTS_MAX + 4;

/// How soon documents have to be moved where so many segments are full.
pub(crate) fn haste(full_segments: usize) -> Haste {
    if full_segments > FULL_SEGMENTS_MAX {
        Haste::AtOnce
    } else if full_segments >= FULL_SEGMENTS_USUAL {
        Haste::Usual
    } else {
        Haste::Leisure
    }
}

/// Since when segments are full.
#[derive(Default)]
pub(crate) struct Cooling {
    full_since: FxHashMap<u64, Instant>,
}

impl Cooling {
    /// Of the full segments, all of them and in order, those that have cooled down.
    pub fn cold<'f>(&mut self, full: &'f [u64], now: Instant) -> &'f [u64] {
        self.full_since.retain(|segment, _| full.binary_search(segment).is_ok());
        for segment in full {
            self.full_since.entry(*segment).or_insert(now);
        }
        let is_cold = |segment: &u64| now.duration_since(self.full_since[segment]) >= COOLING;
        // They fill one after the other.
        let cold = full.partition_point(is_cold);
        &full[..cold.max(full.len().saturating_sub(COOLING_SEGMENTS_MAX))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_segment_is_cold_after_its_time() {
        let mut cooling = Cooling::default();
        let start = Instant::now();
        assert_eq!(cooling.cold(&[3], start), []);
        assert_eq!(cooling.cold(&[3, 4], start + 5 * SECOND), []);
        assert_eq!(cooling.cold(&[3, 4, 5], start + 20 * SECOND), [3]);
        assert_eq!(cooling.cold(&[4, 5], start + 24 * SECOND), []);
        assert_eq!(cooling.cold(&[4, 5], start + 25 * SECOND), [4]);
        assert_eq!(cooling.cold(&[4, 5], start + 40 * SECOND), [4, 5]);
    }

    #[test]
    fn no_more_than_so_many_cool_at_once() {
        let mut cooling = Cooling::default();
        let full: Vec<u64> = (0..20).collect();
        assert_eq!(cooling.cold(&full, Instant::now()), [0, 1, 2, 3]);
    }

    #[test]
    fn who_moves_takes_its_time_until_cold_ones_wait() {
        assert_eq!([17, 18, 20, 21].map(haste), [Haste::Leisure, Haste::Usual, Haste::Usual, Haste::AtOnce]);
    }
}
