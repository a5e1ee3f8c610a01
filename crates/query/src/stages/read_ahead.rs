//! Documents read in batches before they are requested, which takes less time than one by one.

use super::Records;
use crate::run::Run;
use bunko_catalog::from_storage;
use bunko_errors::Result;
use bunko_store::{Location, RecordId, View};
use std::ops::Range;

/// Maximum number of records in one batch.
pub(super) const RECORDS_MAX: usize = 256;
/// A batch reads no more documents after this many bytes.
const BYTES_MAX: usize = 256 << 10;

/// The next records, with their documents. Batches start small, since the caller may want the first document only, and
/// they never exceed the limit: a plan with a limit examines what it would examine one by one. Documents not requested
/// yet, and the keys that led to them, do not count as examined.
pub(super) struct ReadAhead {
    records: Vec<Ahead>,
    /// Index of the next record to return.
    next: usize,
    /// End of the records whose documents were read.
    read: usize,
    documents: Vec<u8>,
    /// Size of the last batch, and the maximum.
    count: usize,
    records_max: usize,
    /// Number of returned records that count towards the limit, as reported by [`Self::take`].
    taken: u64,
    is_over: bool,
    /// Keys examined after the last record, until the caller learns that there is no other.
    keys_at_end: u64,
}

struct Ahead {
    record: RecordId,
    /// Keys examined to find the record.
    keys: u64,
    /// The location of its document, and the document's range in the buffer.
    document: Option<(Location, Range<usize>)>,
}

impl ReadAhead {
    /// Reads batches of at most `records_max`.
    pub fn new(records_max: usize) -> Self {
        Self {
            records: Vec::new(),
            next: 0,
            read: 0,
            documents: Vec::new(),
            count: 0,
            records_max,
            taken: 0,
            is_over: false,
            keys_at_end: 0,
        }
    }

    /// The next record that has a document, with the document's location.
    pub fn next(&mut self, input: &mut dyn Records, run: &mut Run) -> Result<Option<(RecordId, Location)>> {
        loop {
            while self.next == self.read {
                if self.next == self.records.len() && !self.gather(input, run)? {
                    run.keys_ahead -= std::mem::take(&mut self.keys_at_end);
                    return Ok(None);
                }
                self.read(run)?;
            }
            let ahead = &self.records[self.next];
            self.next += 1;
            run.keys_ahead -= ahead.keys;
            if let Some((location, _)) = &ahead.document {
                return Ok(Some((ahead.record, *location)));
            }
        }
    }

    /// The document of the last record returned.
    pub fn document(&self) -> &[u8] {
        let last = self.next.checked_sub(1).and_then(|last| self.records[last].document.as_ref());
        last.map_or(&[], |(_, place)| &self.documents[place.clone()])
    }

    /// Counts the last record returned towards the limit.
    pub fn take(&mut self) {
        self.taken += 1;
    }

    /// Fills the next batch; returns whether it has any records.
    fn gather(&mut self, input: &mut dyn Records, run: &mut Run) -> Result<bool> {
        self.records.clear();
        (self.next, self.read) = (0, 0);
        self.count = (2 * self.count).clamp(1, self.records_max);
        // A reader that takes more than the limit sorts its input, and reads all of it.
        let left = run.query.wanted().map_or(0, |wanted| wanted.saturating_sub(self.taken));
        let most = if left == 0 { self.count } else { self.count.min(usize::try_from(left).unwrap_or(usize::MAX)) };
        let most = if run.is_unlimited() { most } else { 1 };
        while !self.is_over && self.records.len() < most {
            let before = run.keys_examined;
            let record = input.next(run)?;
            let keys = run.keys_examined - before;
            run.keys_ahead += keys;
            let Some(record) = record else {
                (self.is_over, self.keys_at_end) = (true, keys);
                break;
            };
            self.records.push(Ahead { record, keys, document: None });
        }
        Ok(!self.records.is_empty())
    }

    /// Reads the documents of the batch.
    fn read(&mut self, run: &Run) -> Result<()> {
        self.documents.clear();
        let (records, documents) = (&mut self.records[self.read..], &mut self.documents);
        let ids: Vec<RecordId> = records.iter().map(|ahead| ahead.record).collect();
        let read =
            run.snapshot.some_records(run.collection.records(), &ids, BYTES_MAX, &mut |number, location, bytes| {
                let start = documents.len();
                documents.extend_from_slice(bytes);
                records[number].document = Some((location, start..documents.len()));
            });
        self.read += read.map_err(from_storage)?;
        Ok(())
    }
}
