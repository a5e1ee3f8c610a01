//! SORT: all of the input is read before the first document comes out.

use super::{DocumentStage, Documents, Row, Stage, StageNumber};
use crate::execution::{Run, StageStatistics};
use crate::find_query::FindQuery;
use crate::plan::Effort;
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;
use bunko_store::RecordId;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Most memory for the documents of one sort, in bytes.
/// Source: MongoDB manual, parameter `internalQueryMaxBlockingSortMemoryUsageBytes`.
pub(crate) const MEMORY_BYTES_MAX: u64 = 100 * 1024 * 1024;

/// Sorts by the query's pattern; with a limit only the first so many documents are kept.
pub(crate) struct Sort {
    pub number: StageNumber,
    pub limit: Option<u64>,
    pub input: Box<dyn DocumentStage>,
}

impl Stage for Sort {
    fn name(&self, _query: &FindQuery) -> &'static str {
        "SORT"
    }

    fn number(&self) -> StageNumber {
        self.number
    }

    fn inputs(&self) -> Vec<&dyn Stage> {
        vec![self.input.as_ref()]
    }

    fn describe(&self, query: &FindQuery, facts: &mut DocumentBuf) {
        let pattern = query.sort.as_ref().map(crate::explain::sort_document).unwrap_or_default();
        facts.append("sortPattern", &pattern).append("memLimit", MEMORY_BYTES_MAX as i32);
        if let Some(limit) = self.limit {
            crate::explain::append_count(facts, "limitAmount", limit);
        }
        facts.append("type", "simple");
    }

    fn describe_run(&self, statistics: &StageStatistics, facts: &mut DocumentBuf) {
        facts
            .append("totalDataSizeSorted", statistics.held_bytes as i64)
            .append("usedDisk", false)
            .append("spills", 0_i32)
            .append("spilledDataStorageSize", 0_i32);
    }

    fn effort(&self) -> Effort {
        match self.input.effort() {
            Effort::Lookups(count) => Effort::Lookups(count),
            _ => Effort::Searching,
        }
    }
}

impl DocumentStage for Sort {
    fn open(&self, run: &Run) -> Box<dyn Documents> {
        Box::new(Sorting {
            number: self.number,
            limit: self.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)),
            input: self.input.open(run),
            sorted: None,
        })
    }
}

struct Sorting {
    number: StageNumber,
    limit: Option<usize>,
    input: Box<dyn Documents>,
    /// What remains to be handed out, last first.
    sorted: Option<Vec<Entry>>,
}

/// A document behind its sort key.
struct Entry {
    bytes: Vec<u8>,
    key_length: usize,
    /// Equal keys stay in the order of the input.
    sequence: u64,
    record: RecordId,
}

impl Entry {
    fn key(&self) -> &[u8] {
        &self.bytes[..self.key_length]
    }

    fn held_bytes(&self) -> u64 {
        (self.bytes.len() + size_of::<Self>()) as u64
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(other.key()).then(self.sequence.cmp(&other.sequence))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

impl Sorting {
    fn sort(&mut self, run: &mut Run) -> Result<Vec<Entry>> {
        let query = std::sync::Arc::clone(&run.query);
        let Some(pattern) = &query.sort else { return Ok(Vec::new()) };
        let mut kept =
            Kept { limit: self.limit.unwrap_or(usize::MAX), heap: BinaryHeap::new(), all: Vec::new(), bytes: 0 };
        let mut key = Vec::new();
        let mut sequence = 0;
        while let Some(row) = self.input.next(run)? {
            key.clear();
            query.scope.operation.work(1 + row.document.len_bytes() / 64)?;
            pattern.append_key(&mut key, row.document, &query.scope.operation, &query.scope.strings)?;
            kept.offer(&key, sequence, &row);
            sequence += 1;
            let statistics = run.at(self.number);
            statistics.rejected += 1;
            statistics.held_bytes = statistics.held_bytes.max(kept.bytes);
            if kept.bytes > MEMORY_BYTES_MAX {
                return Err(too_large());
            }
        }
        kept.into_sorted(&query.scope.operation)
    }
}

/// The entries that may come out: all of them, or the least so many.
struct Kept {
    limit: usize,
    /// With a limit: the greatest on top, to be replaced by lesser ones.
    heap: BinaryHeap<Entry>,
    /// Without a limit.
    all: Vec<Entry>,
    bytes: u64,
}

impl Kept {
    fn offer(&mut self, key: &[u8], sequence: u64, row: &Row<'_>) {
        let mut bytes = Vec::new();
        if self.heap.len() == self.limit {
            // A later one of equal keys is the greater.
            if self.heap.peek().is_none_or(|greatest| greatest.key() <= key) {
                return;
            }
            if let Some(replaced) = self.heap.pop() {
                self.bytes -= replaced.held_bytes();
                bytes = replaced.bytes;
                bytes.clear();
            }
        }
        bytes.reserve_exact(key.len() + row.document.len_bytes());
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(row.document.as_bytes());
        let entry = Entry { bytes, key_length: key.len(), sequence, record: row.record };
        self.bytes += entry.held_bytes();
        if self.limit == usize::MAX {
            self.all.push(entry);
        } else {
            self.heap.push(entry);
        }
    }

    /// Greatest first.
    fn into_sorted(self, operation: &OperationContext) -> Result<Vec<Entry>> {
        let kept = if self.limit == usize::MAX { self.all } else { self.heap.into_vec() };
        operation.sort_by(kept, |a, b| b.cmp(a))
    }
}

fn too_large() -> Failure {
    Failure::new(
        ErrorCode::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED,
        format!("Sort exceeded memory limit of {MEMORY_BYTES_MAX} bytes, but did not opt in to external sorting."),
    )
}

impl Documents for Sorting {
    fn next<'s>(&'s mut self, run: &mut Run) -> Result<Option<Row<'s>>> {
        match &mut self.sorted {
            None => self.sorted = Some(self.sort(run)?),
            // The one that was lent last.
            Some(sorted) => drop(sorted.pop()),
        }
        let statistics = run.at(self.number);
        let Some(entry) = self.sorted.as_ref().and_then(|sorted| sorted.last()) else {
            statistics.is_at_end = true;
            return Ok(None);
        };
        statistics.advanced += 1;
        let document = DocumentRef::trusted(&entry.bytes[entry.key_length..]);
        Ok(Some(Row { record: entry.record, document }))
    }

    fn is_over(&self) -> bool {
        // Besides the one that was lent last.
        self.sorted.as_ref().is_some_and(|sorted| sorted.len() <= 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(limit: usize, keys: &[&str]) -> Vec<(String, u64)> {
        let mut kept = Kept { limit, heap: BinaryHeap::new(), all: Vec::new(), bytes: 0 };
        for (sequence, key) in keys.iter().enumerate() {
            let row = Row { record: RecordId(sequence as u64), document: DocumentRef::EMPTY };
            kept.offer(key.as_bytes(), sequence as u64, &row);
        }
        let held: u64 = kept.heap.iter().chain(&kept.all).map(Entry::held_bytes).sum();
        assert_eq!(kept.bytes, held);
        let sorted = kept.into_sorted(&OperationContext::unlimited()).expect("without limits");
        let entries = sorted.into_iter().rev();
        entries.map(|entry| (String::from_utf8_lossy(entry.key()).into_owned(), entry.record.0)).collect()
    }

    #[test]
    fn equal_keys_keep_their_order_and_a_limit_keeps_the_first() {
        let keys = ["b", "a", "c", "b", "aa", "a"];
        let all = sorted(usize::MAX, &keys);
        let expected = [("a", 1), ("a", 5), ("aa", 4), ("b", 0), ("b", 3), ("c", 2)];
        assert_eq!(all, expected.map(|(key, record)| (key.to_owned(), record)));
        for limit in 1..8 {
            assert_eq!(sorted(limit, &keys), all[..limit.min(6)], "limit {limit}");
        }
    }
}
