//! The buckets that take the next measurements. A restart forgets them, and new buckets are begun.

use bunko_bson::ObjectId;
use parking_lot::Mutex;
use std::collections::HashMap;

/// Maximum number of sources in the map, over all time series. When it is full, it is cleared.
const SOURCES_MAX: usize = 100_000;
/// Longest source in the map, in bytes. Measurements of a longer source begin a bucket with each insert.
const SOURCE_BYTES_MAX: usize = 1024;

/// The last bucket of each source.
#[derive(Debug, Default)]
pub struct OpenBuckets(Mutex<HashMap<Key, ObjectId>>);

/// The collection's UUID, and [`bunko_timeseries::Measurement::source`].
type Key = ([u8; 16], Vec<u8>);

impl OpenBuckets {
    pub(crate) fn get(&self, collection: [u8; 16], source: &[u8]) -> Option<ObjectId> {
        self.0.lock().get(&(collection, source.to_vec())).copied()
    }

    pub(crate) fn set(&self, collection: [u8; 16], source: &[u8], bucket: ObjectId) {
        if source.len() > SOURCE_BYTES_MAX {
            return;
        }
        let mut open = self.0.lock();
        if open.len() >= SOURCES_MAX {
            open.clear();
        }
        open.insert((collection, source.to_vec()), bucket);
    }
}
