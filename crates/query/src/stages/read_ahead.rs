//! Documents that are read before they are asked for, many at once: that takes less time than one by one.

use super::{Records, StageNumber};
use crate::execution::Run;
use bunko_catalog::from_storage;
use bunko_errors::Result;
use bunko_store::{Location, RecordId, View};
use std::ops::Range;

/// Most records whose documents are read at once.
const RECORDS_MAX: usize = 256;
/// Bytes of documents beyond which no more are read at once.
const BYTES_MAX: usize = 256 << 10;

/// Records that come next, with their documents. As nobody may ask for more than the first, these are few at first; and never more
/// than a limit lets pass. What was not asked for yet counts as not examined.
#[derive(Default)]
pub(super) struct ReadAhead {
    records: Vec<Ahead>,
    /// The first of them that was not handed out.
    next: usize,
    /// Behind the last of them whose document was read.
    read: usize,
    documents: Vec<u8>,
    /// How many are taken next.
    count: usize,
    /// How many have been handed out and were taken, as whoever reads on says.
    taken: u64,
    is_over: bool,
}

struct Ahead {
    record: RecordId,
    /// Keys that were examined to find it.
    keys: u64,
    /// Where its document stands, in the log and in the buffer.
    document: Option<(Location, Range<usize>)>,
}

impl ReadAhead {
    /// The next record that has a document, and where that stands.
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

    /// The document of the record that was given last.
    pub fn document(&self) -> &[u8] {
        let last = self.next.checked_sub(1).and_then(|last| self.records[last].document.as_ref());
        last.map_or(&[], |(_, place)| &self.documents[place.clone()])
    }

    /// The record that was given last is one of those that count towards a limit.
    pub fn take(&mut self) {
        self.taken += 1;
    }

    /// Takes the next records; whether there were any.
    fn gather(&mut self, input: &mut dyn Records, stage: StageNumber, run: &mut Run) -> Result<bool> {
        self.records.clear();
        (self.next, self.read) = (0, 0);
        self.count = (2 * self.count).clamp(1, RECORDS_MAX);
        // Who takes more than the limit sorts what it takes, and takes all.
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

    /// Reads documents of records that were taken.
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
