//! Records of a file by their positions, for readers that go forward from several places at once: the two ends of a
//! window, and the document between them.
//!
//! Only the starts of the file's blocks are in memory, 16 bytes per block of 64 KiB. Recently read blocks stay
//! unpacked, so that blocks that several readers pass are read once.

use crate::Spilled;
use crate::record_file::{Block, RecordFile, RecordWriter, damaged, record_at, record_bytes};
use bunko_errors::Result;
use bunko_operation::OperationContext;
use std::sync::Arc;

/// This many unpacked blocks may stay even if memory is short: a few readers must not read a block for each record.
const BLOCKS_MIN: usize = 4;

/// The start of a block.
struct BlockStart {
    /// Position of its first record.
    position: usize,
    /// Offset in the file, in bytes.
    offset: u64,
}

/// Writes records one after the other.
pub struct PositionedWriter {
    file: RecordWriter,
    blocks: Vec<BlockStart>,
    count: usize,
}

impl PositionedWriter {
    /// Creates a file in the operation's scratch space; `None` if it has none.
    /// # Errors
    /// Errors of files.
    pub fn create(operation: &OperationContext) -> Result<Option<Self>> {
        let file = RecordWriter::create(operation)?;
        Ok(file.map(|file| Self { file, blocks: Vec::new(), count: 0 }))
    }

    /// Appends a record. Its value is given in parts.
    /// # Errors
    /// Errors of files and of counting work.
    pub fn add(&mut self, key: &[u8], value: &[&[u8]], operation: &OperationContext) -> Result<()> {
        let place = self.file.write(key, value, operation)?;
        if self.blocks.last().is_none_or(|last| last.offset != place.block) {
            self.blocks.push(BlockStart { position: self.count, offset: place.block });
        }
        self.count += 1;
        Ok(())
    }

    /// Ends the file. About `unpacked_bytes_max` bytes of its blocks may stay unpacked in memory.
    /// # Errors
    /// Errors of files.
    pub fn finish(self, unpacked_bytes_max: usize) -> Result<(Positioned, Spilled)> {
        let (file, spilled) = self.file.finish()?;
        let unpacked = self.blocks.iter().map(|_| None).collect();
        let positioned = Positioned {
            file,
            blocks: self.blocks,
            count: self.count,
            unpacked,
            resident: Vec::new(),
            resident_bytes: 0,
            unpacked_bytes_max,
            reads: 0,
            buffer: Block::default(),
        };
        Ok((positioned, Spilled { spills: 1, ..spilled }))
    }
}

/// Reads records by their positions.
pub struct Positioned {
    file: RecordFile,
    blocks: Vec<BlockStart>,
    count: usize,
    /// The unpacked blocks, by number.
    unpacked: Vec<Option<Resident>>,
    /// Numbers of the unpacked blocks.
    resident: Vec<usize>,
    resident_bytes: usize,
    unpacked_bytes_max: usize,
    /// Number of records read so far.
    reads: u64,
    buffer: Block,
}

struct Resident {
    block: Arc<Unpacked>,
    /// The value of `reads` when one of its records was last read.
    last_read: u64,
}

/// The records of a block.
struct Unpacked {
    bytes: Vec<u8>,
    /// The start of each record.
    starts: Vec<u32>,
}

impl Unpacked {
    fn new(bytes: Vec<u8>) -> Result<Self> {
        let (mut starts, mut at) = (Vec::new(), 0);
        while at < bytes.len() {
            starts.push(at as u32);
            at += record_bytes(record_at(&bytes, at).ok_or_else(damaged)?);
        }
        Ok(Self { bytes, starts })
    }

    fn held_bytes(&self) -> usize {
        self.bytes.len() + self.starts.len() * size_of::<u32>()
    }
}

/// A record; it keeps its block in memory.
pub struct Lent {
    block: Arc<Unpacked>,
    start: usize,
}

impl Lent {
    /// The key and the value of the record.
    pub fn record(&self) -> (&[u8], &[u8]) {
        // The record was checked when the block was unpacked.
        record_at(&self.block.bytes, self.start).unwrap_or_default()
    }
}

impl Positioned {
    /// The record at a position; `None` after the last.
    /// # Errors
    /// Errors of files and of counting work.
    pub fn get(&mut self, position: usize, operation: &OperationContext) -> Result<Option<Lent>> {
        if position >= self.count {
            return Ok(None);
        }
        let number = self.blocks.partition_point(|block| block.position <= position) - 1;
        self.reads += 1;
        let block = match &mut self.unpacked[number] {
            Some(resident) => {
                resident.last_read = self.reads;
                Arc::clone(&resident.block)
            }
            None => self.unpack(number, operation)?,
        };
        let start = *block.starts.get(position - self.blocks[number].position).ok_or_else(damaged)? as usize;
        Ok(Some(Lent { block, start }))
    }

    fn unpack(&mut self, number: usize, operation: &OperationContext) -> Result<Arc<Unpacked>> {
        let block = Unpacked::new(self.file.unpack(self.blocks[number].offset, &mut self.buffer)?)?;
        operation.work(1 + block.bytes.len() / 64)?;
        self.resident_bytes += block.held_bytes();
        while self.resident_bytes > self.unpacked_bytes_max && self.resident.len() >= BLOCKS_MIN {
            self.drop_least_lately_read();
        }
        let block = Arc::new(block);
        self.unpacked[number] = Some(Resident { block: Arc::clone(&block), last_read: self.reads });
        self.resident.push(number);
        Ok(block)
    }

    fn drop_least_lately_read(&mut self) {
        let last_read = |number: usize| self.unpacked[number].as_ref().map_or(0, |resident| resident.last_read);
        let least = (0..self.resident.len()).min_by_key(|index| last_read(self.resident[*index]));
        let Some(least) = least else { return };
        let number = self.resident.swap_remove(least);
        if let Some(resident) = self.unpacked[number].take() {
            self.resident_bytes -= resident.block.held_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ScratchDirectory;
    use bunko_errors::Failure;
    use bunko_operation::{Interruption, MemoryLimits};

    struct Uninterrupted;

    impl Interruption for Uninterrupted {
        fn reason(&self) -> Option<Failure> {
            None
        }
    }

    /// A record that begins with its position. Lengths differ widely.
    fn value(position: usize) -> Vec<u8> {
        let mut value = position.to_le_bytes().to_vec();
        value.resize(8 + position * 7919 % 9000, position as u8);
        value
    }

    #[test]
    fn several_readers_find_what_was_written_in_little_memory() {
        let data = tempfile::tempdir().expect("a directory");
        let scratch = ScratchDirectory::open(&data.path().join("scratch")).expect("a directory").leaving(0);
        let mut limits = MemoryLimits::none();
        limits.stages.scratch = Some(Arc::new(scratch));
        let operation = OperationContext::new(Arc::new(Uninterrupted), limits);
        for unpacked_bytes_max in [0, 500_000, 1 << 30] {
            let mut writer = PositionedWriter::create(&operation).expect("made").expect("there is a disk");
            for position in 0..3000 {
                let value = value(position);
                let (first, second) = value.split_at(value.len() / 3);
                writer.add(&position.to_be_bytes(), &[first, second], &operation).expect("written");
            }
            let (mut positioned, spilled) = writer.finish(unpacked_bytes_max).expect("written");
            assert_eq!((spilled.spills, spilled.records), (1, 3000));
            let mut check = |position: usize| {
                let lent = positioned.get(position, &operation).expect("read").expect("is there");
                assert_eq!(lent.record(), (&position.to_be_bytes()[..], &value(position)[..]));
                assert!(positioned.resident.len() <= BLOCKS_MIN || positioned.resident_bytes <= unpacked_bytes_max);
            };
            for position in 0..3000_usize {
                [position, position / 2, (position + 1000).min(2999), position * 31 % 3000]
                    .into_iter()
                    .for_each(&mut check);
            }
            assert!(positioned.get(3000, &operation).expect("read").is_none());
        }
    }
}
