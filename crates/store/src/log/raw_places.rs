//! The positions of readers that ship the log, for which it keeps segments.

use super::segment::segment_of;
use crate::Lsn;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// The positions of all readers.
#[derive(Default)]
pub(super) struct RawPlaces(Mutex<Vec<Weak<RawPlace>>>);

/// The position of one reader.
pub(super) struct RawPlace {
    /// Position of the next record to be read.
    next: AtomicU64,
    /// Maximum bytes of the log that are kept for this reader.
    kept_bytes_max: u64,
}

impl RawPlaces {
    /// Adds a reader, which counts until the result is dropped.
    pub fn add(&self, next: Lsn, kept_bytes_max: u64) -> Arc<RawPlace> {
        let place = Arc::new(RawPlace { next: AtomicU64::new(next.0), kept_bytes_max });
        let mut places = self.0.lock();
        // Readers that are gone are removed here too: reading an archive makes a new reader for each part, and the next
        // checkpoint may be far off.
        places.retain(|place| place.strong_count() > 0);
        places.push(Arc::downgrade(&place));
        drop(places);
        place
    }

    /// Number of the oldest segment that a reader needs, or of the segment of `end` if no reader needs one below it.
    pub fn oldest_segment(&self, end: Lsn) -> u64 {
        let mut places = self.0.lock();
        places.retain(|place| place.strong_count() > 0);
        let needed = places.iter().filter_map(Weak::upgrade);
        let needed = needed.map(|place| place.next().0.max(end.0.saturating_sub(place.kept_bytes_max)));
        segment_of(needed.fold(end.0, u64::min))
    }
}

impl RawPlace {
    pub fn next(&self) -> Lsn {
        Lsn(self.next.load(Ordering::Acquire))
    }

    pub fn move_to(&self, next: Lsn) {
        self.next.store(next.0, Ordering::Release);
    }
}
