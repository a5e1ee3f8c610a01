//! Gives up segments of the log that are no longer needed.

use super::append::{Log, UNKNOWN};
use super::segment::Segment;
use crate::{Lsn, Result};
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Log {
    /// Removes segments that are no longer needed. Their files are reused only once the last reader is done, because a
    /// reader that found its segment earlier must not see another segment's bytes in the file.
    pub(crate) fn retire(&self, numbers: &[u64]) -> Result<()> {
        let mut leaving = self.leaving.lock();
        if !numbers.is_empty() {
            let gone: Vec<_> = {
                let segments = self.segments.load();
                numbers.iter().filter_map(|number| segments.get(number).cloned()).collect()
            };
            self.segments.rcu(|segments| {
                let mut segments = FxHashMap::clone(segments);
                segments.retain(|number, _| !numbers.contains(number));
                segments
            });
            leaving.extend(gone);
            self.shipped_from.store(self.first_without_gap(), Ordering::Release);
        }
        let mut outcome = Ok(());
        leaving.retain(|segment| {
            let is_read = Arc::strong_count(segment) > 1;
            if !is_read && let Err(error) = self.preallocator.recycle(segment) {
                outcome = Err(error);
            }
            is_read
        });
        outcome
    }

    /// Number of the oldest segment that readers of raw bytes need, or of the segment of `end` if they need none below
    /// it.
    pub(crate) fn oldest_shipped_segment(&self, end: Lsn) -> u64 {
        self.raw_places.oldest_segment(end)
    }

    /// The name of a segment's file.
    pub(crate) fn segment_name(number: u64) -> PathBuf {
        Segment::path(Path::new(""), number)
    }

    /// The file of a segment.
    ///
    /// # Errors
    /// [`crate::StorageError::Corrupt`] if it is missing.
    pub(crate) fn segment_path(&self, number: u64) -> Result<PathBuf> {
        self.shared_segment(number).map(|segment| segment.path.clone())
    }

    /// Numbers of the segments that exist, the current one last.
    pub(crate) fn segment_numbers(&self) -> Vec<u64> {
        let mut numbers: Vec<u64> = self.segments.load().keys().copied().collect();
        numbers.sort_unstable();
        numbers
    }

    /// Number of the segment from which the log has all segments up to its end: older ones may exist for the sake of some
    /// documents in them.
    pub(crate) fn oldest_shippable_segment(&self) -> u64 {
        match self.shipped_from.load(Ordering::Acquire) {
            UNKNOWN => {
                let first = self.first_without_gap();
                // A segment that is given up meanwhile has stored a later number.
                let known = self.shipped_from.compare_exchange(UNKNOWN, first, Ordering::AcqRel, Ordering::Acquire);
                known.map_or_else(|later| later, |_| first)
            }
            known => known,
        }
    }

    fn first_without_gap(&self) -> u64 {
        let segments = self.segments.load();
        let mut first = segments.keys().max().copied().unwrap_or(0);
        while first > 0 && segments.contains_key(&(first - 1)) {
            first -= 1;
        }
        first
    }

    /// Number of the oldest segment that exists; `None` if there is none.
    pub(crate) fn oldest_segment(&self) -> Option<u64> {
        self.segments.load().keys().min().copied()
    }
}
