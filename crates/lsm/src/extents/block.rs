//! A block: documents of one collection, compressed together.
//!
//! ```text
//! stored:  0  u32  CRC-32C of all that follows
//!          4  u32  length of the compressed part
//!          8  u32  length of the content
//!          12 u32  compressor
//!          16      the content, compressed
//! content: the documents; then, for each document: distance from the previous document in the log, difference of
//!          their record ids, and length, as variable-length integers; then the length of these numbers, u32
//! ```

use crate::compression::Compression;
use crate::keys;
use bunko_heap::prefetch_value;
use bunko_store::{Location, RecordId, varint};

/// Bytes before the compressed part.
pub(super) const HEADER_BYTES: usize = 16;
/// Maximum length of a block's content; a longer one is refused as damaged. A document has at most 16 MB plus some
/// overhead, and blocks of several documents are far smaller.
const CONTENT_BYTES_MAX: usize = 64 << 20;

/// Approximate size of an entry in the directory.
const DIRECTORY_ENTRY_BYTES_USUAL: usize = 5;

/// A document's position in a decoded block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    /// Position of the document in the log when it was written, which its location names for good.
    position: u64,
    record: RecordId,
    start: u32,
    length: u32,
}

/// A decoded block.
#[derive(Debug)]
pub(crate) struct Block {
    /// Entries in the order of their log positions.
    entries: Box<[Entry]>,
    /// Log positions of the first and the last entry. A search begins with them; stored here, they save it an access to
    /// distant memory.
    span: (u64, u64),
    content: Box<[u8]>,
}

/// A document in a block.
pub(crate) struct Held<'b> {
    pub position: u64,
    pub record: RecordId,
    pub document: &'b [u8],
}

impl Block {
    /// Decodes a block from its stored form. The error says what is wrong with it.
    pub fn decode(stored: &[u8]) -> Result<Self, &'static str> {
        let u32_at = |at: usize| {
            stored.get(at..at + 4).map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
        };
        let header = (u32_at(0), u32_at(4), u32_at(8), u32_at(12));
        let (Some(checksum), Some(length), Some(content_length), Some(compressor)) = header else {
            return Err("a block shorter than its header");
        };
        if bunko_checksum::crc32c(&stored[4..]) != checksum || length as usize != stored.len() - HEADER_BYTES {
            return Err("a block that fails its checksum");
        }
        if content_length as usize > CONTENT_BYTES_MAX {
            return Err("a block of impossible length");
        }
        let content = decompress(compressor, &stored[HEADER_BYTES..], content_length as usize)
            .ok_or("a block that cannot be decompressed")?;
        Self::parse(content.into_boxed_slice()).ok_or("a malformed block")
    }

    fn parse(content: Box<[u8]>) -> Option<Self> {
        let (rest, directory_length) = content.split_last_chunk::<4>()?;
        let documents_length = rest.len().checked_sub(u32::from_le_bytes(*directory_length) as usize)?;
        let mut directory = &rest[documents_length..];
        let mut entries = Vec::with_capacity(directory.len() / DIRECTORY_ENTRY_BYTES_USUAL);
        let (mut position, mut record, mut start) = (0_u64, 0_u64, 0_u32);
        while !directory.is_empty() {
            position = position.checked_add(varint::take(&mut directory)?)?;
            record = record.wrapping_add(unzigzag(varint::take(&mut directory)?) as u64);
            let length = u32::try_from(varint::take(&mut directory)?).ok()?;
            entries.push(Entry { position, record: RecordId(record), start, length });
            start = start.checked_add(length)?;
        }
        (start as usize == documents_length).then_some(())?;
        let at = |entry: Option<&Entry>| entry.map_or(0, |entry| entry.position);
        let span = (at(entries.first()), at(entries.last()));
        Some(Self { entries: entries.into_boxed_slice(), span, content })
    }

    /// The document at a log position; `None` if the block does not have it.
    pub fn document(&self, location: Location) -> Option<&[u8]> {
        self.find(location, 0).map(|number| self.bytes(self.entries[number]))
    }

    /// The number of the document at a log position; `guess` is tried first. `None` if the block does not have it.
    pub fn find(&self, location: Location, guess: usize) -> Option<usize> {
        let position = location.position;
        let is_there = |number: usize| self.entries.get(number).is_some_and(|entry| entry.position == position);
        let number = if is_there(guess) {
            guess
        } else {
            let about = self.about(position)?;
            keys::about(about, self.entries.len(), |number| self.entries[number].position < position)
        };
        (is_there(number) && self.entries[number].length == location.length).then_some(number)
    }

    /// Index at which the entry for a log position probably is; `None` if the block cannot have the position.
    fn about(&self, position: u64) -> Option<usize> {
        let (first, last) = self.span;
        let is_within = (first..=last).contains(&position) && !self.entries.is_empty();
        is_within.then(|| keys::guess(self.span, position, self.entries.len()))
    }

    /// Prefetches the likely entry for a location into the processor's cache.
    pub fn prefetch(&self, location: Location) {
        if let Some(entry) = self.about(location.position).and_then(|about| self.entries.get(about)) {
            prefetch_value(entry);
        }
    }

    fn bytes(&self, entry: Entry) -> &[u8] {
        &self.content[entry.start as usize..(entry.start + entry.length) as usize]
    }

    /// The document with that number, in order of log positions; `None` after the last.
    pub fn get(&self, number: usize) -> Option<Held<'_>> {
        let entry = *self.entries.get(number)?;
        Some(Held { position: entry.position, record: entry.record, document: self.bytes(entry) })
    }

    /// Bytes that the block takes in memory.
    pub fn memory_bytes(&self) -> u64 {
        (size_of::<Self>() + self.content.len() + self.entries.len() * size_of::<Entry>()) as u64
    }
}

/// Builds a block from documents.
#[derive(Default)]
pub(super) struct BlockBuilder {
    /// The documents so far.
    content: Vec<u8>,
    directory: Vec<u8>,
    pub first_position: u64,
    last_position: u64,
    last_record: u64,
}

impl BlockBuilder {
    /// Adds a document, which must come after all earlier ones in the log.
    pub fn push(&mut self, position: u64, record: RecordId, document: &[u8]) {
        if self.is_empty() {
            self.first_position = position;
        }
        debug_assert!(position >= self.last_position, "documents come in the order of the log");
        varint::put(&mut self.directory, position - self.last_position);
        varint::put(&mut self.directory, zigzag(record.0.wrapping_sub(self.last_record) as i64));
        varint::put(&mut self.directory, document.len() as u64);
        self.content.extend_from_slice(document);
        (self.last_position, self.last_record) = (position, record.0);
    }

    pub fn is_empty(&self) -> bool {
        self.directory.is_empty()
    }

    /// Bytes of the documents so far.
    pub fn documents_bytes(&self) -> usize {
        self.content.len()
    }

    /// Appends the stored form to `into`, and empties the builder.
    pub fn finish(
        &mut self,
        compression: Compression,
        compressors: &mut Compressors,
        into: &mut Vec<u8>,
    ) -> Result<(), String> {
        self.content.extend_from_slice(&self.directory);
        self.content.extend_from_slice(&(self.directory.len() as u32).to_le_bytes());
        let start = into.len();
        into.extend_from_slice(&[0; HEADER_BYTES]);
        let compressor = compressors.compress(compression, &self.content, into)?;
        let length = (into.len() - start - HEADER_BYTES) as u32;
        let header = &mut into[start..start + HEADER_BYTES];
        header[4..8].copy_from_slice(&length.to_le_bytes());
        header[8..12].copy_from_slice(&(self.content.len() as u32).to_le_bytes());
        header[12..16].copy_from_slice(&compressor.to_le_bytes());
        let checksum = bunko_checksum::crc32c(&into[start + 4..]);
        into[start..start + 4].copy_from_slice(&checksum.to_le_bytes());
        self.directory.clear();
        self.content.clear();
        // A document may have megabytes; the builder must not keep that memory for all later blocks.
        self.content.shrink_to(1 << 20);
        (self.last_position, self.last_record) = (0, 0);
        Ok(())
    }
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// Numbers of the compressors in files; never reused.
const STORED: u32 = 0;
const SNAPPY: u32 = 1;
const LZ4: u32 = 2;
const ZSTD: u32 = 3;

/// State that compressors reuse.
pub(super) struct Compressors {
    lz4: lz4_flex::block::CompressTable,
    snappy: snap::raw::Encoder,
}

impl Default for Compressors {
    fn default() -> Self {
        Self { lz4: lz4_flex::block::CompressTable::default(), snappy: snap::raw::Encoder::new() }
    }
}

impl Compressors {
    /// Appends the content, compressed if that makes it smaller. Returns the number of the compressor.
    fn compress(&mut self, compression: Compression, content: &[u8], into: &mut Vec<u8>) -> Result<u32, String> {
        let start = into.len();
        let number = match compression {
            Compression::None => None,
            Compression::Snappy => {
                into.resize(start + snap::raw::max_compress_len(content.len()), 0);
                let length = self.snappy.compress(content, &mut into[start..]);
                into.truncate(start + length.map_err(|error| error.to_string())?);
                Some(SNAPPY)
            }
            Compression::Lz4 => {
                into.resize(start + lz4_flex::block::get_maximum_output_size(content.len()), 0);
                let length = lz4_flex::block::compress_into_with_table(content, &mut into[start..], &mut self.lz4);
                into.truncate(start + length.map_err(|error| error.to_string())?);
                Some(LZ4)
            }
            Compression::Zstd { level } => {
                into.resize(start + zstd::zstd_safe::compress_bound(content.len()), 0);
                let length = zstd::bulk::compress_to_buffer(content, &mut into[start..], level);
                into.truncate(start + length.map_err(|error| error.to_string())?);
                Some(ZSTD)
            }
        };
        match number {
            Some(number) if into.len() - start < content.len() => Ok(number),
            _ => {
                into.truncate(start);
                into.extend_from_slice(content);
                Ok(STORED)
            }
        }
    }
}

fn decompress(compressor: u32, stored: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    let written = match compressor {
        STORED => {
            content.extend_from_slice(stored);
            stored.len()
        }
        SNAPPY => {
            content.resize(length, 0);
            snap::raw::Decoder::new().decompress(stored, &mut content).ok()?
        }
        LZ4 => {
            content.resize(length, 0);
            lz4_flex::block::decompress_into(stored, &mut content).ok()?
        }
        ZSTD => {
            content.resize(length, 0);
            zstd::bulk::decompress_to_buffer(stored, &mut content[..]).ok()?
        }
        _ => return None,
    };
    (written == length).then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPRESSIONS: [Compression; 4] =
        [Compression::None, Compression::Snappy, Compression::Lz4, Compression::Zstd { level: 3 }];

    fn stored(compression: Compression) -> Vec<u8> {
        let mut builder = BlockBuilder::default();
        for number in 0..20_u64 {
            builder.push(1000 + number * 300, RecordId(50 - number), "document ".repeat(number as usize).as_bytes());
        }
        let mut stored = Vec::new();
        builder.finish(compression, &mut Compressors::default(), &mut stored).expect("compresses");
        assert!(builder.is_empty());
        stored
    }

    #[test]
    fn documents_come_back_by_their_place_in_the_log() {
        for compression in COMPRESSIONS {
            let block = Block::decode(&stored(compression)).expect("whole");
            let at = |position, length| block.document(Location { position, length, checksum: 0 });
            assert_eq!(at(1000, 0), Some(b"".as_slice()));
            assert_eq!(at(1600, 18), Some(b"document document ".as_slice()));
            assert_eq!((at(1600, 17), at(1601, 18)), (None, None));
            let records: Vec<_> = (0..20).filter_map(|number| Some(block.get(number)?.record.0)).collect();
            assert_eq!(records, (31..=50).rev().collect::<Vec<_>>());
        }
    }

    #[test]
    fn incompressible_blocks_are_stored_as_they_are() {
        let mut builder = BlockBuilder::default();
        let noise: Vec<u8> = (0..1000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        builder.push(7, RecordId(1), &noise);
        let mut stored = Vec::new();
        builder.finish(Compression::Lz4, &mut Compressors::default(), &mut stored).expect("compresses");
        assert!(stored.len() < noise.len() + HEADER_BYTES + 16);
        let block = Block::decode(&stored).expect("whole");
        assert_eq!(block.get(0).map(|held| held.document), Some(noise.as_slice()));
    }

    #[test]
    fn every_flipped_byte_is_found() {
        for compression in COMPRESSIONS {
            let whole = stored(compression);
            for at in 0..whole.len() {
                let mut flipped = whole.clone();
                flipped[at] ^= 0x10;
                assert!(Block::decode(&flipped).is_err(), "{compression}: byte {at}");
            }
            assert!(Block::decode(&whole[..whole.len() - 1]).is_err());
        }
    }
}
