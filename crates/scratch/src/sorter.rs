//! Sorting: in memory while it suffices, then in runs on disk.
//!
//! In memory, a record is an entry with the first eight bytes of its key and its place in an arena. When the memory is
//! full, the entries become a sorted run. Many runs of one level become one of the next (`merge`).

use crate::Spilled;
use crate::arena::Arena;
use crate::merge::{Merge, Runs};
use crate::record_file::RecordWriter;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::{Gatherer, OperationContext};

/// If only the first records are wanted, at least this many more are gathered before the others are dropped.
const SPARE: usize = 256;

/// Sorts records by the bytes of their keys; equal keys stay in order of arrival.
pub struct Sorter {
    records: Arena,
    /// Number of wanted records.
    wanted: usize,
    /// The key of the last wanted record so far: only records that sort before it can be wanted.
    last_wanted: Option<Vec<u8>>,
    runs: Runs,
    gatherer: Gatherer,
    refusal: fn(usize) -> Failure,
    sorted_bytes: u64,
}

/// MongoDB's error for a sort that may not use the disk.
fn too_large(bytes_max: usize) -> Failure {
    let message = format!("Sort exceeded memory limit of {bytes_max} bytes, but did not opt in to external sorting.");
    Failure::new(ErrorCode::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED, message)
}

impl Sorter {
    /// Sorts all records.
    pub fn new() -> Self {
        Self {
            records: Arena::default(),
            wanted: usize::MAX,
            last_wanted: None,
            runs: Runs::default(),
            gatherer: Gatherer::Sort,
            refusal: too_large,
            sorted_bytes: 0,
        }
    }

    /// Keeps only the first `wanted` records.
    #[must_use]
    pub fn first(self, wanted: Option<u64>) -> Self {
        Self { wanted: wanted.map_or(usize::MAX, |wanted| usize::try_from(wanted).unwrap_or(usize::MAX)), ..self }
    }

    /// Sets the stage whose memory limit applies, and the failure if that limit is exceeded without scratch space.
    #[must_use]
    pub fn gathering(self, gatherer: Gatherer, refusal: fn(usize) -> Failure) -> Self {
        Self { gatherer, refusal, ..self }
    }

    /// Adds a record. Its value is given in parts.
    /// # Errors
    /// `QueryExceededMemoryLimitNoDiskUseAllowed` or the failure of [`Self::gathering`]; errors of files and of
    /// counting work.
    #[inline]
    pub fn add(&mut self, key: &[u8], value: &[&[u8]], operation: &OperationContext) -> Result<()> {
        // A later record with an equal key sorts after the earlier one.
        if self.last_wanted.as_ref().is_some_and(|last| last.as_slice() <= key) {
            return Ok(());
        }
        self.sorted_bytes += (key.len() + value.iter().map(|part| part.len()).sum::<usize>()) as u64;
        self.records.add(key, value);
        let count = self.records.entries.len();
        if self.wanted != usize::MAX && count >= self.wanted.saturating_mul(2).max(self.wanted.saturating_add(SPARE)) {
            self.drop_unwanted(operation)?;
        }
        let bytes_max = operation.stage_bytes_now(self.gatherer);
        if self.records.held_bytes() > bytes_max {
            self.relieve(bytes_max, operation)?;
        }
        Ok(())
    }

    /// Bytes of the records that were sorted, not counting records that could not be among the first.
    pub fn sorted_bytes(&self) -> u64 {
        self.sorted_bytes
    }

    /// Statistics of the runs so far.
    pub fn spilled(&self) -> Spilled {
        self.runs.spilled
    }

    fn drop_unwanted(&mut self, operation: &OperationContext) -> Result<()> {
        if self.records.entries.len() <= self.wanted {
            return Ok(());
        }
        self.records.sort(operation)?;
        self.records.keep_first(self.wanted);
        let last = self.records.entries.last().map(|last| self.records.record(*last).0.to_vec());
        self.last_wanted = last.or(self.last_wanted.take());
        Ok(())
    }

    fn relieve(&mut self, bytes_max: usize, operation: &OperationContext) -> Result<()> {
        self.drop_unwanted(operation)?;
        // Less than half of the memory is used: spilling would leave a short run, and many of them.
        if self.records.held_bytes() <= bytes_max / 2 {
            return Ok(());
        }
        if operation.scratch().is_none() {
            if self.records.held_bytes() <= bytes_max {
                return Ok(());
            }
            return Err((self.refusal)(bytes_max));
        }
        self.spill(operation)
    }

    fn spill(&mut self, operation: &OperationContext) -> Result<()> {
        let bytes_max = operation.stage_bytes_max(self.gatherer);
        let Some(mut writer) = RecordWriter::create(operation)? else { return Err((self.refusal)(bytes_max)) };
        self.records.sort(operation)?;
        for (key, value) in (0..self.wanted).map_while(|position| self.records.in_order(position)) {
            writer.write(key, &[value], operation)?;
        }
        if operation.stage_bytes_now(self.gatherer) < bytes_max {
            // Memory is short: the next run may take less memory than the arena holds.
            self.records = Arena::default();
        } else {
            self.records.clear();
        }
        self.runs.add(writer, self.wanted as u64, operation)
    }

    /// Ends the input.
    /// # Errors
    /// As [`Self::add`].
    pub fn finish(mut self, operation: &OperationContext) -> Result<Sorted> {
        if self.runs.is_empty() {
            self.records.sort(operation)?;
            self.records.entries.truncate(self.wanted);
            return Ok(Sorted {
                order: Order::InMemory { records: self.records, next: 0 },
                spilled: Spilled::default(),
            });
        }
        if !self.records.entries.is_empty() {
            self.spill(operation)?;
        }
        let order = Order::Merged { merge: self.runs.merged(operation)?, left: self.wanted };
        Ok(Sorted { order, spilled: self.runs.spilled })
    }
}

impl Default for Sorter {
    fn default() -> Self {
        Self::new()
    }
}

/// Sorted records, one by one.
pub struct Sorted {
    order: Order,
    spilled: Spilled,
}

enum Order {
    InMemory { records: Arena, next: usize },
    Merged { merge: Merge, left: usize },
}

impl Sorted {
    /// The key and the value of the next record, valid until the next call; `None` at the end.
    /// # Errors
    /// Errors of files and of counting work.
    #[allow(clippy::should_implement_trait, reason = "what is lent until the next call cannot be an iterator's item")]
    pub fn next(&mut self, operation: &OperationContext) -> Result<Option<(&[u8], &[u8])>> {
        match &mut self.order {
            Order::InMemory { records, next } => {
                let record = records.in_order(*next);
                *next += usize::from(record.is_some());
                operation.work(1)?;
                Ok(record)
            }
            Order::Merged { left: 0, .. } => Ok(None),
            Order::Merged { merge, left } => {
                *left -= 1;
                merge.next(operation)
            }
        }
    }

    /// Whether no record is left, as far as is known without reading.
    pub fn is_over(&self) -> bool {
        match &self.order {
            Order::InMemory { records, next } => *next >= records.entries.len(),
            Order::Merged { left, .. } => *left == 0,
        }
    }

    /// Statistics of the runs.
    pub fn spilled(&self) -> Spilled {
        self.spilled
    }
}
