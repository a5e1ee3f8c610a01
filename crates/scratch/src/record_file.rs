//! Files of records, each a key and a value, in blocks that are compressed separately.
//!
//! ```text
//! file:   block*
//! block:  compressed length (u32) | length (u32) | lz4 of: record*
//! record: length of the key (u32) | length of the value (u32) | key | value
//! ```

use crate::Spilled;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::{OperationContext, ScratchFile};
use std::io;
use std::sync::Arc;

/// A block is written once its records have this many bytes.
const BLOCK_BYTES: usize = 64 * 1024;
const BLOCK_HEADER_BYTES: usize = 8;
const RECORD_HEADER_BYTES: usize = 8;

/// The place of a record: the offset of its block in the file, and its offset in the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordPlace {
    pub block: u64,
    pub offset: u32,
}

pub(crate) fn io_failure(error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::StorageFull {
        return Failure::new(ErrorCode::OUT_OF_DISK_SPACE, format!("no room for a scratch file: {error}"));
    }
    Failure::new(ErrorCode::FILE_STREAM_FAILED, format!("a scratch file failed: {error}"))
}

pub(crate) fn damaged() -> Failure {
    Failure::new(ErrorCode::FILE_STREAM_FAILED, "a scratch file is not as it was written")
}

/// Writes one file.
pub(crate) struct RecordWriter {
    file: Box<dyn ScratchFile>,
    block: Vec<u8>,
    /// Reused between blocks.
    packed: Vec<u8>,
    /// Offset of the block that is being filled.
    block_offset: u64,
    spilled: Spilled,
}

impl RecordWriter {
    /// Creates a file in the operation's scratch space; `None` if it has none.
    pub fn create(operation: &OperationContext) -> Result<Option<Self>> {
        let Some(space) = operation.scratch() else { return Ok(None) };
        let file = space.create().map_err(|error| io_failure(&error))?;
        operation.work_done().note_disk_use();
        let (block, packed) = (Vec::new(), Vec::new());
        Ok(Some(Self { file, block, packed, block_offset: 0, spilled: Spilled::default() }))
    }

    /// Appends a record. Its value is given in parts.
    pub fn write(&mut self, key: &[u8], value: &[&[u8]], operation: &OperationContext) -> Result<RecordPlace> {
        let value_bytes: usize = value.iter().map(|part| part.len()).sum();
        let place = RecordPlace { block: self.block_offset, offset: self.block.len() as u32 };
        self.block.extend_from_slice(&(key.len() as u32).to_le_bytes());
        self.block.extend_from_slice(&(value_bytes as u32).to_le_bytes());
        self.block.extend_from_slice(key);
        for part in value {
            self.block.extend_from_slice(part);
        }
        self.spilled.records += 1;
        self.spilled.bytes += (key.len() + value_bytes) as u64;
        operation.work(1 + (key.len() + value_bytes) / 64)?;
        if self.block.len() >= BLOCK_BYTES {
            self.write_block()?;
        }
        Ok(place)
    }

    fn write_block(&mut self) -> Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        self.packed.resize(BLOCK_HEADER_BYTES + lz4_flex::block::get_maximum_output_size(self.block.len()), 0);
        let (header, body) = self.packed.split_at_mut(BLOCK_HEADER_BYTES);
        let packed_bytes = lz4_flex::block::compress_into(&self.block, body).map_err(|_| damaged())?;
        header[..4].copy_from_slice(&(packed_bytes as u32).to_le_bytes());
        header[4..].copy_from_slice(&(self.block.len() as u32).to_le_bytes());
        let written = &self.packed[..BLOCK_HEADER_BYTES + packed_bytes];
        self.file.append(written).map_err(|error| io_failure(&error))?;
        self.block_offset += written.len() as u64;
        self.block.clear();
        Ok(())
    }

    /// Ends the file, and returns it for reading, with its statistics.
    pub fn finish(mut self) -> Result<(RecordFile, Spilled)> {
        self.write_block()?;
        let spilled = Spilled { stored_bytes: self.block_offset, ..self.spilled };
        Ok((RecordFile { file: Arc::from(self.file), end: self.block_offset }, spilled))
    }
}

/// A complete file.
#[derive(Clone)]
pub(crate) struct RecordFile {
    file: Arc<dyn ScratchFile>,
    end: u64,
}

impl RecordFile {
    /// A reader from the beginning.
    pub fn reader(&self) -> RecordReader {
        RecordReader { file: self.clone(), next_block: 0, block: Block::default() }
    }

    /// The records of the block at an offset. `block` provides memory that is reused.
    pub fn unpack(&self, offset: u64, block: &mut Block) -> Result<Vec<u8>> {
        self.read_block(offset, block)?;
        Ok(std::mem::take(&mut block.bytes))
    }

    /// Reads the block at an offset, and returns the offset of the next one.
    fn read_block(&self, offset: u64, block: &mut Block) -> Result<u64> {
        let mut header = [0; BLOCK_HEADER_BYTES];
        self.file.read_at(offset, &mut header).map_err(|error| io_failure(&error))?;
        let length = |at: usize| header[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize);
        let (packed_bytes, bytes) = (length(0), length(4));
        let body = offset + BLOCK_HEADER_BYTES as u64;
        let next = body + packed_bytes as u64;
        if next > self.end {
            return Err(damaged());
        }
        block.packed.resize(packed_bytes, 0);
        self.file.read_at(body, &mut block.packed).map_err(|error| io_failure(&error))?;
        // lz4 expands a byte to at most 255, so a longer length is damage and nothing is allocated for it.
        if bytes > packed_bytes.saturating_mul(255) {
            return Err(damaged());
        }
        block.bytes.resize(bytes, 0);
        match lz4_flex::block::decompress_into(&block.packed, &mut block.bytes) {
            Ok(unpacked) if unpacked == bytes => {}
            _ => return Err(damaged()),
        }
        block.next = 0;
        Ok(next)
    }
}

/// The key and the value of the record at an offset in its block; `None` if its lengths exceed the block.
pub(crate) fn record_at(block: &[u8], at: usize) -> Option<(&[u8], &[u8])> {
    let (key_bytes, rest) = block.get(at..)?.split_first_chunk()?;
    let (value_bytes, rest) = rest.split_first_chunk()?;
    let (key_bytes, value_bytes) = (u32::from_le_bytes(*key_bytes) as usize, u32::from_le_bytes(*value_bytes) as usize);
    let (key, rest) = rest.split_at_checked(key_bytes)?;
    Some((key, rest.get(..value_bytes)?))
}

/// Bytes of a record in its block.
pub(crate) fn record_bytes((key, value): (&[u8], &[u8])) -> usize {
    RECORD_HEADER_BYTES + key.len() + value.len()
}

/// A block in memory.
#[derive(Default)]
pub(crate) struct Block {
    bytes: Vec<u8>,
    packed: Vec<u8>,
    /// Offset of the next record.
    next: usize,
}

impl Block {
    fn record(&self, at: usize) -> Option<(&[u8], &[u8])> {
        record_at(&self.bytes, at)
    }
}

/// Reads a file from the beginning, record by record.
pub struct RecordReader {
    file: RecordFile,
    next_block: u64,
    block: Block,
}

impl RecordReader {
    /// The key and the value of the next record, valid until the next call; `None` at the end.
    /// # Errors
    /// Errors of files and of counting work.
    #[allow(clippy::should_implement_trait, reason = "what is lent until the next call cannot be an iterator's item")]
    pub fn next(&mut self, operation: &OperationContext) -> Result<Option<(&[u8], &[u8])>> {
        while self.block.next == self.block.bytes.len() {
            if self.next_block == self.file.end {
                return Ok(None);
            }
            self.next_block = self.file.read_block(self.next_block, &mut self.block)?;
        }
        let at = self.block.next;
        let (key, value) = self.block.record(at).ok_or_else(damaged)?;
        let bytes = key.len() + value.len();
        operation.work(1 + bytes / 64)?;
        self.block.next = at + RECORD_HEADER_BYTES + bytes;
        Ok(self.block.record(at))
    }

    /// Whether no record is left.
    pub fn is_over(&self) -> bool {
        self.block.next == self.block.bytes.len() && self.next_block == self.file.end
    }
}

/// Reads records by their places; the last block stays in memory.
pub(crate) struct RecordLookup {
    file: RecordFile,
    read: Option<u64>,
    block: Block,
}

impl RecordLookup {
    pub fn new(file: RecordFile) -> Self {
        Self { file, read: None, block: Block::default() }
    }

    pub fn get(&mut self, place: RecordPlace, operation: &OperationContext) -> Result<(&[u8], &[u8])> {
        if self.read != Some(place.block) {
            self.read = None;
            self.file.read_block(place.block, &mut self.block)?;
            self.read = Some(place.block);
            operation.work(self.block.bytes.len() / 64)?;
        }
        self.block.record(place.offset as usize).ok_or_else(damaged)
    }
}
