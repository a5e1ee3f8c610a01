//! Delays the moving of recently written documents. Where documents change over and over, all documents of a segment
//! are soon dead, and none has to be moved.

use bunko_store::{SEGMENT_BYTES, Urgency};
use rustc_hash::FxHashMap;
use std::time::{Duration, Instant};

/// How long a full segment is left alone.
const COOLING: Duration = Duration::from_secs(20);
/// Maximum number of segments that are left alone at a time: they are uncompressed, so they take disk.
const COOLING_SEGMENTS_MAX: usize = 16;
/// Maximum size of the segments that are left alone at a time, in bytes of the log: 1 GiB.
pub const COOLING_BYTES_MAX: u64 = COOLING_SEGMENTS_MAX as u64 * SEGMENT_BYTES;

/// From this number of full segments on, the mover must not fall further behind: beside the cooling ones, one segment
/// is being moved and one waits.
const FULL_SEGMENTS_USUAL: usize = COOLING_SEGMENTS_MAX + 2;
/// Above this number of full segments, no cold segment may wait longer: writers are faster than the mover.
const FULL_SEGMENTS_MAX: usize = COOLING_SEGMENTS_MAX + 4;

/// How soon documents have to be moved, given the number of full segments.
pub(crate) fn urgency(full_segments: usize) -> Urgency {
    if full_segments > FULL_SEGMENTS_MAX {
        Urgency::AtOnce
    } else if full_segments >= FULL_SEGMENTS_USUAL {
        Urgency::Usual
    } else {
        Urgency::Leisure
    }
}

/// The times since which segments are full.
#[derive(Default)]
pub(crate) struct Cooling {
    full_since: FxHashMap<u64, Instant>,
}

impl Cooling {
    /// The segments that have cooled down, out of `full`, which must have all full segments in order.
    pub fn cold<'f>(&mut self, full: &'f [u64], now: Instant) -> &'f [u64] {
        self.full_since.retain(|segment, _| full.binary_search(segment).is_ok());
        for segment in full {
            self.full_since.entry(*segment).or_insert(now);
        }
        let is_cold = |segment: &u64| now.duration_since(self.full_since[segment]) >= COOLING;
        // Segments fill one after the other, so the cold ones come first.
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
    fn the_mover_takes_its_time_until_cold_segments_wait() {
        assert_eq!([17, 18, 20, 21].map(urgency), [Urgency::Leisure, Urgency::Usual, Urgency::Usual, Urgency::AtOnce]);
    }
}
