//! Statistics of queries, for `$queryStats`: counts, times and documents by the *key* of a query. A key is a document
//! with the query's shape, its client and its options; queries that differ only in values share one.
//!
//! An [`Execution`] is one query with all of its batches. It is added to the statistics when it is dropped.
//!
//! Memory is drawn from the server's budget before an entry is made. The entries that were used longest ago go first,
//! when there are too many or the budget has no room.

mod metrics;

pub use metrics::Metrics;

use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_operation::{BatchWork, Draw, Purpose, ServerMemory};
use foldhash::HashMap;
use metrics::Finished;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that an entry takes beside its key: the metrics, and its places in the maps.
const ENTRY_BYTES: usize = size_of::<Entry>() + 128;

/// The statistics of all queries that are counted.
#[derive(Debug)]
pub struct QueryStatistics {
    memory: Arc<ServerMemory>,
    entries: Mutex<Entries>,
    evicted: AtomicU64,
    refused: AtomicU64,
}

#[derive(Debug, Default)]
struct Entries {
    by_key: HashMap<Arc<[u8]>, Entry>,
    /// Keys by their last use.
    by_use: BTreeMap<u64, Arc<[u8]>>,
    uses: u64,
    bytes: u64,
    /// The bytes in the budget.
    draw: Option<Draw>,
}

#[derive(Debug)]
struct Entry {
    metrics: Metrics,
    last_use: u64,
}

/// The sizes and counts that `serverStatus` shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryStatisticsSize {
    /// Entries now.
    pub entries: u64,
    /// Bytes that the entries take.
    pub bytes: u64,
    /// Entries that were removed because of their memory, since the start.
    pub evicted: u64,
    /// Executions that were not added because there was no memory, since the start.
    pub refused: u64,
}

impl QueryStatistics {
    /// Statistics without an entry, whose memory comes from that budget.
    pub fn new(memory: Arc<ServerMemory>) -> Arc<Self> {
        Arc::new(Self { memory, entries: Mutex::default(), evicted: AtomicU64::new(0), refused: AtomicU64::new(0) })
    }

    /// Begins to count a query. The statistics may take `bytes_max` bytes when it ends.
    pub fn begin(self: &Arc<Self>, key: DocumentBuf, bytes_max: u64) -> Execution {
        // The key is counted apart from the operation, because the query's cursor may stay open for long.
        let draw = self.memory.count(key.as_ref().as_bytes().len() as u64, Purpose::Work);
        Execution { statistics: Arc::clone(self), key, bytes_max, finished: Finished::default(), _draw: draw }
    }

    /// Visits each entry: its key and its metrics.
    pub fn for_each(&self, mut visit: impl FnMut(DocumentRef<'_>, &Metrics)) {
        // Copied under the lock, so that queries do not wait while documents are made of the entries.
        let entries: Vec<_> = {
            let entries = self.entries.lock();
            entries.by_key.iter().map(|(key, entry)| (Arc::clone(key), entry.metrics.clone())).collect()
        };
        for (key, metrics) in &entries {
            visit(DocumentRef::trusted(key), metrics);
        }
    }

    /// Sizes and counts.
    pub fn size(&self) -> QueryStatisticsSize {
        let entries = self.entries.lock();
        QueryStatisticsSize {
            entries: entries.by_key.len() as u64,
            bytes: entries.bytes,
            evicted: self.evicted.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }

    /// Removes entries until they take at most `bytes_max` bytes.
    pub fn shrink(&self, bytes_max: u64) {
        let mut entries = self.entries.lock();
        while entries.bytes > bytes_max && self.evict(&mut entries) {}
        // Without this, the map would keep the room of removed entries, which the budget does not count.
        entries.by_key.shrink_to_fit();
    }

    fn add(&self, key: &[u8], bytes_max: u64, finished: &Finished) {
        let mut entries = self.entries.lock();
        let entries = &mut *entries;
        entries.uses += 1;
        let this_use = entries.uses;
        if let Some(entry) = entries.by_key.get_mut(key) {
            entry.metrics.add(finished);
            if let Some(key) = entries.by_use.remove(&entry.last_use) {
                entries.by_use.insert(this_use, key);
            }
            entry.last_use = this_use;
            return;
        }
        if !self.make_room(entries, (key.len() + ENTRY_BYTES) as u64, bytes_max) {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let mut metrics = Metrics::new(finished);
        metrics.add(finished);
        let key: Arc<[u8]> = key.into();
        entries.by_use.insert(this_use, Arc::clone(&key));
        entries.by_key.insert(key, Entry { metrics, last_use: this_use });
    }

    /// Takes the bytes of a new entry; returns whether there was room.
    fn make_room(&self, entries: &mut Entries, bytes: u64, bytes_max: u64) -> bool {
        if bytes > bytes_max {
            return false;
        }
        while entries.bytes + bytes > bytes_max && self.evict(entries) {}
        loop {
            let is_drawn = match &mut entries.draw {
                Some(draw) => draw.grow(bytes),
                None => {
                    entries.draw = self.memory.draw(bytes, Purpose::Work).filter(|draw| draw.bytes() == bytes);
                    entries.draw.is_some()
                }
            };
            if is_drawn {
                entries.bytes += bytes;
                return true;
            }
            if !self.evict(entries) {
                return false;
            }
        }
    }

    /// Removes the entry that was used longest ago; returns whether there was one.
    fn evict(&self, entries: &mut Entries) -> bool {
        let Some((_, key)) = entries.by_use.pop_first() else { return false };
        entries.by_key.remove(&key);
        entries.bytes = entries.bytes.saturating_sub((key.len() + ENTRY_BYTES) as u64);
        if let Some(draw) = &mut entries.draw {
            draw.set(entries.bytes);
        }
        self.evicted.fetch_add(1, Ordering::Relaxed);
        true
    }
}

/// A query that is being counted.
pub struct Execution {
    statistics: Arc<QueryStatistics>,
    key: DocumentBuf,
    bytes_max: u64,
    finished: Finished,
    /// The bytes of the key in the budget.
    _draw: Draw,
}

/// Facts about the plan of a query.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct PlanFacts {
    pub sorts: bool,
    pub from_trial: bool,
    pub from_cache: bool,
}

impl Execution {
    /// Notes the plan.
    pub fn note_plan(&mut self, plan: PlanFacts) {
        self.finished.plan = plan;
    }

    /// Adds a batch.
    pub fn add(&mut self, batch: &BatchWork) {
        self.finished.add(batch);
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        self.statistics.add(self.key.as_ref().as_bytes(), self.bytes_max, &self.finished);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::{ValueRef, number};
    use bunko_operation::Examined;
    use std::time::Duration;

    fn count(statistics: &Arc<QueryStatistics>, key: i32, bytes_max: u64) {
        let key = DocumentBuf::new().with("number", key).with("padding", "x".repeat(200).as_str());
        let mut execution = statistics.begin(key, bytes_max);
        for micros in [10, 20] {
            let examined = Examined { keys: 3, documents: 2 };
            let elapsed = Duration::from_micros(micros);
            execution.add(&BatchWork { elapsed, examined, returned: 1, ended_ms: 7, ..BatchWork::default() });
        }
    }

    fn keys(statistics: &QueryStatistics) -> Vec<i64> {
        let mut keys = Vec::new();
        statistics.for_each(|key, _| keys.extend(key.get("number").and_then(number::as_i64_exact)));
        keys.sort_unstable();
        keys
    }

    #[test]
    fn batches_are_one_query_and_equal_keys_one_entry() {
        let statistics = QueryStatistics::new(ServerMemory::new(1 << 20));
        count(&statistics, 1, 1 << 20);
        count(&statistics, 1, 1 << 20);
        let mut shown = Vec::new();
        statistics.for_each(|_, metrics| shown.push(metrics.to_document()));
        let [metrics] = shown.as_slice() else { panic!("{shown:?}") };
        let of = |name: &str, field: &str| {
            let part = metrics.as_ref().get(name).and_then(ValueRef::as_document).expect("a document");
            part.get(field).and_then(number::as_i64_exact).expect("a number")
        };
        assert_eq!(metrics.as_ref().get("execCount").and_then(number::as_i64_exact), Some(2));
        assert_eq!(["sum", "max", "min", "sumOfSquares"].map(|field| of("totalExecMicros", field)), [60, 30, 30, 1800]);
        assert_eq!(of("firstResponseExecMicros", "sum"), 20);
        assert_eq!([of("docsReturned", "sum"), of("keysExamined", "max"), of("docsExamined", "sum")], [4, 6, 8]);
        assert_eq!(of("hasSortStage", "false"), 2);
    }

    #[test]
    fn memory_is_drawn_and_the_entries_used_longest_ago_go_first() {
        let memory = ServerMemory::new(64 << 20);
        let statistics = QueryStatistics::new(Arc::clone(&memory));
        count(&statistics, 0, u64::MAX);
        let one = statistics.size().bytes;
        let four = 4 * one;
        for key in 1..4 {
            count(&statistics, key, four);
        }
        assert_eq!((keys(&statistics), memory.held()), (vec![0, 1, 2, 3], four));
        count(&statistics, 0, four);
        count(&statistics, 4, four);
        assert_eq!((keys(&statistics), statistics.size().evicted), (vec![0, 2, 3, 4], 1));
        statistics.shrink(2 * one);
        assert_eq!((keys(&statistics), memory.held()), (vec![0, 4], 2 * one));
        // An entry that would be larger than all of the memory is left out.
        count(&statistics, 5, one - 1);
        assert_eq!((keys(&statistics), statistics.size().refused), (vec![0, 4], 1));
        statistics.shrink(0);
        assert_eq!((statistics.size().entries, memory.held()), (0, 0));
    }

    #[test]
    fn a_budget_without_room_is_not_exceeded() {
        let memory = ServerMemory::new(1 << 20);
        let held = memory.draw((1 << 20) / 16 * 7, Purpose::Work).expect("room");
        let more = memory.draw((1 << 20) / 16 * 7, Purpose::Work).expect("room");
        let statistics = QueryStatistics::new(Arc::clone(&memory));
        for key in 0..1000 {
            count(&statistics, key, 1 << 20);
        }
        let size = statistics.size();
        assert!(size.entries > 0 && size.evicted > 0 && memory.held() <= memory.limit(Purpose::Work), "{size:?}");
        drop((held, more));
    }
}
