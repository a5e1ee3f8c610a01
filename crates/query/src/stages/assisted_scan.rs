//! A scan with a filter by two threads, which share the parts of a collection. The scanning thread shows all rows, in
//! the order of the scan. If the helper still searches the next part, the scanning thread searches a later part
//! meanwhile.
//!
//! Such a scan begins after [`RECORDS_ALONE`] records, if the filter looks only at values (no `$expr`, `$near` or
//! `$text`), the operation has a thread of its own, and `Helpers` of `operation` permits one more thread. Each thread
//! takes the next part when it is ready. The helper hands over copies of the needed fields of matching rows, so results
//! do not depend on the thread that found a row. Only the operation's thread counts memory: the helper gets its buffers
//! back.

use super::kept_fields::KeptFields;
use super::{Row, RowVisitor, StageNumber, WholeDocument};
use crate::find_query::FindQuery;
use crate::run::Run;
use bunko_bson::DocumentRef;
use bunko_catalog::from_storage;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::{HelperPermit, OperationContext};
use bunko_store::{Direction, KeyspaceId, RecordId, RecordRange, Snapshot, View};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

/// Records that one thread searches alone before it asks for a helper: some milliseconds of work.
pub(super) const RECORDS_ALONE: u64 = 16 * 1024;
/// Records per part.
const PART_RECORDS: u64 = 8 * 1024;
/// A helper stops in a part once its rows take this many bytes; the scanning thread searches the rest of the part.
const FOUND_BYTES_MAX: usize = 1 << 20;
/// Maximum number of parts that the helper has searched and the scanning thread has not shown yet.
const PARTS_AHEAD: usize = 1;
/// Minimum number of documents per record id. Below it, most parts would be almost empty.
const DENSITY_MIN: f64 = 0.5;

/// The reason that a scan by two threads ended.
pub(super) enum Ended {
    /// The scan reached its end.
    AtEnd,
    /// The visitor stopped at this record.
    Behind(RecordId),
}

/// The remaining parts of a scan; each part goes to the first thread that takes it.
struct Parts {
    first: u64,
    count: u64,
    next: AtomicU64,
}

impl Parts {
    fn range(&self, part: u64) -> RecordRange {
        let first = self.first + part * PART_RECORDS;
        let is_last = part + 1 == self.count;
        let end = if is_last { Bound::Unbounded } else { Bound::Excluded(RecordId(first + PART_RECORDS)) };
        RecordRange { start: Bound::Included(RecordId(first)), end }
    }

    fn take_next(&self) -> Option<u64> {
        let part = self.next.fetch_add(1, Ordering::Relaxed);
        (part < self.count).then_some(part)
    }

    fn take(&self, part: u64) -> bool {
        self.next.compare_exchange(part, part + 1, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// Rows found in one part.
#[derive(Default)]
struct PartRows {
    rows: Vec<(RecordId, usize)>,
    /// The documents, one after the other; each row has the end of its document.
    bytes: Vec<u8>,
    examined: u64,
    /// The last record examined, if the search stopped before the end of the part.
    stopped_at: Option<RecordId>,
    failure: Option<Failure>,
}

/// Searches parts for the thread that shows rows.
struct Finder {
    snapshot: Arc<Snapshot>,
    query: Arc<FindQuery>,
    records: KeyspaceId,
    operation: Arc<OperationContext>,
}

/// The remainder of a scan, and the permit for its helper thread.
pub(super) struct AssistedScan {
    number: StageNumber,
    parts: Parts,
    permit: HelperPermit,
}

impl AssistedScan {
    /// The scan after `record`, if it is worth two threads and a helper is available.
    pub(super) fn behind(record: RecordId, number: StageNumber, run: &Run) -> Option<Self> {
        let first = record.0.checked_add(1)?;
        let end = run.collection.record_ids_end().0;
        let left = end.checked_sub(first)?;
        let is_dense = run.collection.count() as f64 >= end as f64 * DENSITY_MIN;
        if left < 2 * PART_RECORDS || !is_dense || !run.is_unlimited() || !run.query.filter.looks_at_values_only() {
            return None;
        }
        let parts = Parts { first, count: left.div_ceil(PART_RECORDS), next: AtomicU64::new(0) };
        Some(Self { number, parts, permit: run.query.scope.operation.helper()? })
    }

    /// Shows all rows to the visitor in scan order.
    pub(super) fn visit(self, run: &mut Run, visitor: &mut RowVisitor<'_>) -> Result<Ended> {
        let Self { number, parts, permit } = self;
        let is_over = AtomicBool::new(false);
        let (sender, found) = sync_channel(PARTS_AHEAD);
        let (returning, returned) = channel();
        let finder = |operation| Finder {
            snapshot: Arc::clone(&run.snapshot),
            query: Arc::clone(&run.query),
            records: run.collection.records(),
            operation,
        };
        let operation = &run.query.scope.operation;
        // The thread that shows rows counts their memory.
        let (own, helper) = (finder(Arc::clone(operation)), finder(operation.beside()));
        std::thread::scope(|scope| {
            let (parts, is_over) = (&parts, &is_over);
            let work = move || {
                let _permit = permit;
                help(&helper, parts, is_over, &sender, &returned);
            };
            // If no thread can be spawned, this thread searches all parts.
            let _ = std::thread::Builder::new().name("scan-helper".to_owned()).spawn_scoped(scope, work);
            let mut showing = Showing { number, run, visitor, finder: own, returning };
            let ended = showing.all(parts, &found);
            is_over.store(true, Ordering::Relaxed);
            // A helper that waits for room in the channel sees it close.
            drop(found);
            ended
        })
    }
}

/// Searches parts one after the other, for the thread that shows their rows.
fn help(
    finder: &Finder,
    parts: &Parts,
    is_over: &AtomicBool,
    sender: &SyncSender<PartRows>,
    returned: &Receiver<PartRows>,
) {
    while !is_over.load(Ordering::Relaxed) {
        let Some(part) = parts.take_next() else { break };
        let mut found = returned.try_recv().unwrap_or_default();
        finder.fill(parts.range(part), is_over, &mut found);
        let has_failed = found.failure.is_some();
        if sender.send(found).is_err() || has_failed {
            break;
        }
    }
}

impl Finder {
    /// Searches a part, and notes a failure in `found`.
    fn fill(&self, range: RecordRange, is_over: &AtomicBool, found: &mut PartRows) {
        let (kept, needs_documents) = (KeptFields::below_sort(&self.query), !self.query.needs_no_field());
        let keep = |document: DocumentRef<'_>, bytes: &mut Vec<u8>| match &kept {
            _ if !needs_documents => {}
            Some(kept) => kept.append(document, bytes),
            None => bytes.extend_from_slice(document.as_bytes()),
        };
        found.failure = self.find(range, is_over, &keep, found).err();
    }

    fn find(
        &self,
        range: RecordRange,
        is_over: &AtomicBool,
        keep: &dyn Fn(DocumentRef<'_>, &mut Vec<u8>),
        found: &mut PartRows,
    ) -> Result<()> {
        found.rows.clear();
        found.bytes.clear();
        (found.examined, found.stopped_at) = (0, None);
        let mut cursor = self.snapshot.records(self.records, range, Direction::Forward);
        while let Some((record, _, bytes)) = cursor.next().map_err(from_storage)? {
            found.examined += 1;
            self.operation.work(1)?;
            let document = DocumentRef::trusted(bytes);
            if self.query.filter.matches_within(document, &self.operation)? {
                keep(document, &mut found.bytes);
                found.rows.push((record, found.bytes.len()));
            }
            if found.bytes.len() >= FOUND_BYTES_MAX || is_over.load(Ordering::Relaxed) {
                found.stopped_at = Some(record);
                break;
            }
        }
        Ok(())
    }
}

/// The thread that shows rows.
struct Showing<'s, 'v> {
    number: StageNumber,
    run: &'s mut Run,
    visitor: &'s mut RowVisitor<'v>,
    finder: Finder,
    /// Returns buffers to the helper for reuse.
    returning: Sender<PartRows>,
}

impl Showing<'_, '_> {
    fn all(&mut self, parts: &Parts, found: &Receiver<PartRows>) -> Result<Ended> {
        // Rows that this thread found in a later part, and the number of that part. The buffer is reused.
        let (mut own, mut waiting) = (PartRows::default(), None);
        for part in 0..parts.count {
            let ended = if waiting.take_if(|later| *later == part).is_some() {
                self.show(&mut own, parts.range(part))?
            } else if parts.take(part) {
                self.search(parts.range(part))?
            } else {
                // The helper has taken this part. It sends its parts in order.
                let sent = found.try_recv().or_else(|_| {
                    if waiting.is_none() {
                        waiting = parts.take_next();
                        if let Some(later) = waiting {
                            self.finder.fill(parts.range(later), &AtomicBool::new(false), &mut own);
                        }
                    }
                    found.recv()
                });
                let Ok(mut sent) = sent else {
                    return Err(Failure::new(ErrorCode::INTERNAL_ERROR, "a scan's helper ended before its part"));
                };
                let ended = self.show(&mut sent, parts.range(part))?;
                let _ = self.returning.send(sent);
                ended
            };
            if let Some(last) = ended {
                return Ok(Ended::Behind(last));
            }
        }
        Ok(Ended::AtEnd)
    }

    /// Searches a part and shows matches. Returns the record at which the visitor stopped, if it did.
    fn search(&mut self, range: RecordRange) -> Result<Option<RecordId>> {
        let query = Arc::clone(&self.run.query);
        let mut cursor = self.run.snapshot.records(self.run.collection.records(), range, Direction::Forward);
        loop {
            self.run.tick()?;
            let Some((record, _, bytes)) = cursor.next().map_err(from_storage)? else { return Ok(None) };
            let document = WholeDocument::of_record(bytes);
            let is_match = document.matches(&query)?;
            let statistics = self.run.at(self.number);
            statistics.docs_examined += 1;
            if !is_match {
                statistics.rejected += 1;
                continue;
            }
            statistics.advanced += 1;
            if (self.visitor)(self.run, Row { record, document: document.fields() })?.is_break() {
                return Ok(Some(record));
            }
        }
    }

    fn show(&mut self, found: &mut PartRows, range: RecordRange) -> Result<Option<RecordId>> {
        let statistics = self.run.at(self.number);
        statistics.docs_examined += found.examined;
        statistics.rejected += found.examined.saturating_sub(found.rows.len() as u64);
        let mut start = 0;
        for (record, end) in &found.rows {
            self.run.tick()?;
            self.run.at(self.number).advanced += 1;
            let bytes = &found.bytes[start..*end];
            let document = if bytes.is_empty() { DocumentRef::EMPTY } else { DocumentRef::trusted(bytes) };
            start = *end;
            if (self.visitor)(self.run, Row { record: *record, document })?.is_break() {
                return Ok(Some(*record));
            }
        }
        if let Some(failure) = found.failure.take() {
            return Err(failure);
        }
        let rest = found.stopped_at.map(|last| RecordRange { start: Bound::Excluded(last), ..range });
        rest.map_or(Ok(None), |rest| self.search(rest))
    }
}
