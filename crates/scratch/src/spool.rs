//! Records in order of arrival, for repeated reading: in memory while it suffices, then in a file.

use crate::Spilled;
use crate::arena::Arena;
use crate::record_file::{RecordFile, RecordLookup, RecordPlace, RecordReader, RecordWriter};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::{Gatherer, OperationContext};
use std::sync::Arc;

/// Gathers values.
pub struct Spool {
    records: Arena,
    file: Option<RecordWriter>,
    places: Vec<RecordPlace>,
    gatherer: Gatherer,
    stage: &'static str,
}

impl Spool {
    /// A spool for a stage; errors about disk space name it.
    pub fn new(gatherer: Gatherer, stage: &'static str) -> Self {
        Self { records: Arena::default(), file: None, places: Vec::new(), gatherer, stage }
    }

    /// Memory that the spool takes, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.records.held_bytes() + self.places.len() * size_of::<RecordPlace>()
    }

    /// Appends a value.
    /// # Errors
    /// `QueryExceededMemoryLimitNoDiskUseAllowed`, errors of files and of counting work.
    pub fn add(&mut self, value: &[u8], operation: &OperationContext) -> Result<()> {
        operation.work(1 + value.len() / 64)?;
        if let Some(file) = &mut self.file {
            self.places.push(file.write(&[], &[value], operation)?);
            return Ok(());
        }
        self.records.add(&[], &[value]);
        if self.records.held_bytes() <= operation.stage_bytes_now(self.gatherer) {
            return Ok(());
        }
        let Some(mut file) = RecordWriter::create(operation)? else {
            let stage = self.stage;
            let message = format!(
                "Exceeded memory limit for {stage}, but didn't allow external sort. Pass allowDiskUse:true to opt in."
            );
            return Err(Failure::new(ErrorCode::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED, message));
        };
        for entry in &self.records.entries {
            self.places.push(file.write(&[], &[self.records.record(*entry).1], operation)?);
        }
        self.records = Arena::default();
        self.file = Some(file);
        Ok(())
    }

    /// Ends the input.
    /// # Errors
    /// Errors of files.
    pub fn finish(self) -> Result<SpoolReader> {
        let Some(file) = self.file else {
            let held = Held::InMemory(Arc::new(self.records));
            return Ok(SpoolReader { held, spilled: Spilled::default(), next: 0 });
        };
        let (file, spilled) = file.finish()?;
        let (reader, lookup) = (file.reader(), Box::new(RecordLookup::new(file.clone())));
        let held = Held::OnDisk { file, reader, lookup, places: self.places.into() };
        Ok(SpoolReader { held, spilled: Spilled { spills: 1, ..spilled }, next: 0 })
    }
}

/// Reads the values from the beginning or by position.
pub struct SpoolReader {
    held: Held,
    spilled: Spilled,
    next: usize,
}

enum Held {
    InMemory(Arc<Arena>),
    OnDisk { file: RecordFile, reader: RecordReader, lookup: Box<RecordLookup>, places: Arc<[RecordPlace]> },
}

impl SpoolReader {
    /// The next value, valid until the next call; `None` at the end.
    /// # Errors
    /// Errors of files and of counting work.
    #[allow(clippy::should_implement_trait, reason = "what is lent until the next call cannot be an iterator's item")]
    pub fn next(&mut self, operation: &OperationContext) -> Result<Option<&[u8]>> {
        match &mut self.held {
            Held::InMemory(records) => {
                let entry = records.entries.get(self.next);
                self.next += 1;
                Ok(entry.map(|entry| records.record(*entry).1))
            }
            Held::OnDisk { reader, .. } => Ok(reader.next(operation)?.map(|(_, value)| value)),
        }
    }

    /// The value at a position; `None` after the last.
    /// # Errors
    /// Errors of files and of counting work.
    pub fn get(&mut self, position: usize, operation: &OperationContext) -> Result<Option<&[u8]>> {
        match &mut self.held {
            Held::InMemory(records) => Ok(records.entries.get(position).map(|entry| records.record(*entry).1)),
            Held::OnDisk { lookup, places, .. } => match places.get(position) {
                Some(place) => Ok(Some(lookup.get(*place, operation)?.1)),
                None => Ok(None),
            },
        }
    }

    /// Another reader of the same values, which begins at the first.
    #[must_use]
    pub fn again(&self) -> Self {
        let held = match &self.held {
            Held::InMemory(records) => Held::InMemory(Arc::clone(records)),
            Held::OnDisk { file, places, .. } => Held::OnDisk {
                file: file.clone(),
                reader: file.reader(),
                lookup: Box::new(RecordLookup::new(file.clone())),
                places: Arc::clone(places),
            },
        };
        Self { held, spilled: self.spilled, next: 0 }
    }

    /// Statistics of the file.
    pub fn spilled(&self) -> Spilled {
        self.spilled
    }
}
