//! Runs in scratch files, each in order, merged into one.

use crate::Spilled;
use crate::arena::prefix;
use crate::record_file::{RecordFile, RecordReader, RecordWriter};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;

/// Maximum number of runs of one level. When a level has this many, they are merged into one run of the next level, so
/// that few files are open, and none is rewritten often.
const RUNS_MAX: usize = 32;

/// The runs of one sort, in the order of the input that they came from.
#[derive(Default)]
pub(crate) struct Runs {
    runs: Vec<Run>,
    pub spilled: Spilled,
}

struct Run {
    /// How often the run's records were merged.
    level: u32,
    file: RecordFile,
}

impl Runs {
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Adds a run whose records arrived after those of all present runs. If runs are merged into one, at most `wanted`
    /// records are kept.
    pub fn add(&mut self, writer: RecordWriter, wanted: u64, operation: &OperationContext) -> Result<()> {
        let (file, written) = writer.finish()?;
        self.spilled += Spilled { spills: 1, ..written };
        self.runs.push(Run { level: 0, file });
        loop {
            let Some(level) = self.runs.last().map(|run| run.level) else { return Ok(()) };
            let same = self.runs.iter().rev().take_while(|run| run.level == level).count();
            if same < RUNS_MAX {
                return Ok(());
            }
            let merged: Vec<Run> = self.runs.drain(self.runs.len() - same..).collect();
            let file = self.merge_into_one(&merged, wanted, operation)?;
            self.runs.push(Run { level: level + 1, file });
        }
    }

    fn merge_into_one(&mut self, runs: &[Run], wanted: u64, operation: &OperationContext) -> Result<RecordFile> {
        let mut merge = Merge::new(runs.iter().map(|run| run.file.reader()).collect(), operation)?;
        // The runs are in scratch files, so the operation has scratch space.
        let no_space =
            || Failure::new(ErrorCode::INTERNAL_ERROR, "the runs of a sort are spilled without scratch space");
        let mut writer = RecordWriter::create(operation)?.ok_or_else(no_space)?;
        let mut written = 0;
        while written < wanted
            && let Some((key, value)) = merge.next(operation)?
        {
            writer.write(key, &[value], operation)?;
            written += 1;
        }
        let (file, written) = writer.finish()?;
        self.spilled.stored_bytes += written.stored_bytes;
        Ok(file)
    }

    /// Merges all runs into one ordered reader.
    pub fn merged(&self, operation: &OperationContext) -> Result<Merge> {
        Merge::new(self.runs.iter().map(|run| run.file.reader()).collect(), operation)
    }
}

/// Merges the records of several files. Records with equal keys come in the order of their files.
pub(crate) struct Merge {
    sources: Vec<Source>,
    /// Index of the source whose record was lent last; that source moves on at the next call.
    lent: Option<usize>,
}

struct Source {
    reader: RecordReader,
    key: Vec<u8>,
    value: Vec<u8>,
    prefix: u64,
}

impl Source {
    /// Moves to the next record. Returns whether there is one.
    fn advance(&mut self, operation: &OperationContext) -> Result<bool> {
        let Some((key, value)) = self.reader.next(operation)? else { return Ok(false) };
        self.key.clear();
        self.key.extend_from_slice(key);
        self.value.clear();
        self.value.extend_from_slice(value);
        self.prefix = prefix(key);
        Ok(true)
    }
}

impl Merge {
    fn new(readers: Vec<RecordReader>, operation: &OperationContext) -> Result<Self> {
        let mut sources = Vec::with_capacity(readers.len());
        for reader in readers {
            let mut source = Source { reader, key: Vec::new(), value: Vec::new(), prefix: 0 };
            if source.advance(operation)? {
                sources.push(source);
            }
        }
        Ok(Self { sources, lent: None })
    }

    /// The next record, lent until the next call; `None` at the end.
    pub fn next(&mut self, operation: &OperationContext) -> Result<Option<(&[u8], &[u8])>> {
        if let Some(lent) = self.lent.take()
            && !self.sources[lent].advance(operation)?
        {
            self.sources.remove(lent);
        }
        operation.work(1)?;
        // There are few sources: comparing all of them is no slower than keeping a heap in order.
        let least = self
            .sources
            .iter()
            .enumerate()
            .min_by(|(_, one), (_, other)| one.prefix.cmp(&other.prefix).then_with(|| one.key.cmp(&other.key)));
        let Some((position, _)) = least else { return Ok(None) };
        self.lent = Some(position);
        let source = &self.sources[position];
        Ok(Some((&source.key, &source.value)))
    }
}
