//! Counts the entries of the oplog.

use crate::entry::{Telling, tell};
use bunko_catalog::from_storage;
use bunko_errors::Result;
use bunko_store::{Direction, Moment, Store};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of the log whose entries are counted as one part.
const PART_BYTES: u64 = 16 << 20;

/// Counts entries. Full parts of the log never change, so only the two ends of a long oplog are read again.
#[derive(Debug, Default)]
pub struct EntryCount {
    /// Entries of all records that begin in a part, by the part's number.
    full: Mutex<BTreeMap<u64, u64>>,
}

impl EntryCount {
    /// The number of entries; 0 if the store keeps no history. `work` is called for each record read.
    /// # Errors
    /// As reading the log, and as `work`.
    pub fn count(&self, store: &Store, work: &mut dyn FnMut() -> Result<()>) -> Result<u64> {
        let Some(span) = store.history_span() else { return Ok(0) };
        // Neither the first part, which may have lost its beginning, nor the last one, which grows, can be remembered.
        let inner = span.start.0 / PART_BYTES + 1..span.end.0 / PART_BYTES;
        let mut counting = Counting { full: self.known().clone(), inner: inner.clone(), total: 0 };
        counting.full.retain(|part, _| inner.contains(part));
        let mut next = Some(span.start.0);
        while let Some(from) = next {
            next = match counting.full.get(&(from / PART_BYTES)) {
                Some(entries) => {
                    counting.total += entries;
                    Some((from / PART_BYTES + 1) * PART_BYTES)
                }
                None => counting.read(store, from, work)?,
            };
        }
        *self.known() = counting.full;
        Ok(counting.total)
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<u64, u64>> {
        self.full.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Counting {
    full: BTreeMap<u64, u64>,
    /// Numbers of the parts that never change.
    inner: Range<u64>,
    total: u64,
}

impl Counting {
    /// Counts the records from `from` up to the next part that is already counted. Returns where that part begins, if
    /// there is one.
    fn read(&mut self, store: &Store, from: u64, work: &mut dyn FnMut() -> Result<()>) -> Result<Option<u64>> {
        let is_early = |moment: Moment| moment.lsn.0 < from;
        let Some(mut history) = store.history(Direction::Forward, &is_early).map_err(from_storage)? else {
            return Ok(None);
        };
        let (mut part, mut entries) = (from / PART_BYTES, 0);
        while let Some(record) = history.next_record().map_err(from_storage)? {
            work()?;
            let own = record.moment.lsn.0 / PART_BYTES;
            if own != part {
                self.finish(part, entries);
                (part, entries) = (own, 0);
                if self.full.contains_key(&part) {
                    return Ok(Some(part * PART_BYTES));
                }
            }
            tell(record, &|_| true, Telling::Together, &mut |_| {
                entries += 1;
                Ok(())
            })?;
        }
        self.finish(part, entries);
        Ok(None)
    }

    fn finish(&mut self, part: u64, entries: u64) {
        self.total += entries;
        if self.inner.contains(&part) {
            self.full.insert(part, entries);
        }
    }
}
