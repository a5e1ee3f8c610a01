//! Documents read in batches before they are requested, which takes less time than one by one.

use super::{Records, StageNumber};
use crate::run::Run;
use bunko_catalog::from_storage;
use bunko_errors::Result;
use bunko_store::{Location, RecordId, View};
use std::ops::Range;

/// Maximum number of records in one batch.
const RECORDS_MAX: usize = 256;
/// A batch reads no more documents after this many bytes.
const BYTES_MAX: usize = 256 << 10;

/// The next records, with their documents. Batches start small, since the caller may want the first document only, and
/// they never exceed the limit. Documents not requested yet do not count as examined.
#[derive(Default)]
pub(super) struct ReadAhead {
    records: Vec<Ahead>,
    /// Index of the next record to return.
    next: usize,
    /// End of the records whose documents were read.
    read: usize,
    documents: Vec<u8>,
    /// Size of the next batch.
    count: usize,
    /// Number of returned records that count towards the limit, as reported by [`Self::take`].
    taken: u64,
    is_over: bool,
}

struct Ahead {
    record: RecordId,
    /// Keys examined to find the record.
    keys: u64,
    /// The location of its document, and the document's range in the buffer.
    document: Option<(Location, Range<usize>)>,
}

impl ReadAhead {
    /// The next record that has a document, with the document's location.
    pub fn next(
        &mut self,
        (input, stage): (&mut dyn Records, StageNumber),
        run: &mut Run,
    ) -> Result<Option<(RecordId, Location)>> {
        loop {
            while self.next == self.read {
                if self.next == self.records.len() && !self.gather(input, stage, run)? {
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
    fn gather(&mut self, input: &mut dyn Records, stage: StageNumber, run: &mut Run) -> Result<bool> {
        self.records.clear();
        (self.next, self.read) = (0, 0);
        self.count = (2 * self.count).clamp(1, RECORDS_MAX);
        // A reader that takes more than the limit sorts its input, and reads all of it.
        let left = run.query.wanted().map_or(0, |wanted| wanted.saturating_sub(self.taken));
        let most = if left == 0 { self.count } else { self.count.min(usize::try_from(left).unwrap_or(usize::MAX)) };
        let most = if run.is_unlimited() { most } else { 1 };
        while !self.is_over && self.records.len() < most {
            let before = run.at(stage).keys_examined;
            let Some(record) = input.next(run)? else {
                self.is_over = true;
                break;
            };
            let keys = run.at(stage).keys_examined - before;
            run.keys_ahead += keys;
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
