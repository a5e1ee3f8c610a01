//! An extent: a file of blocks with the live documents of some segments of the log.
//!
//! ```text
//! header     magic, number of the extent, CRC-32C of both
//! blocks     see [`super::block`]
//! directory  for each block, by keyspace and place in the log: keyspace, place of its first document, offset, length,
//!            bytes of its documents
//! trailer    offset of the directory, its length, its CRC-32C, CRC-32C of the trailer so far
//! ```
//! The file is made under a temporary name, synced and renamed. So a file with an extent's name is complete, and it
//! never changes.

use super::block::{Block, BlockBuilder, Compressors, HEADER_BYTES};
use crate::compression::Compression;
use bunko_store::planted::{self, Bug};
use bunko_store::{KeyspaceId, RecordId, Result, StorageError, files, varint};
use rustc_hash::FxHashMap;
use rustix::fs::Advice;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"BUNKOEXT";
const FILE_HEADER_BYTES: u64 = 20;
const TRAILER_BYTES: u64 = 20;
/// Bytes of documents after which a block is closed. Smaller blocks compress worse; larger ones make each cold read
/// slower.
const BLOCK_BYTES: usize = 16 * 1024;
/// Bytes that the operating system is asked to read ahead of a scan.
const READ_AHEAD_BYTES: u64 = 1 << 20;
/// Bytes that are buffered before they are written to the file: few enough that they are still in a processor's cache
/// then.
const WRITE_BYTES: usize = 128 * 1024;

/// Position of a block.
#[derive(Clone, Copy, Debug)]
struct BlockPlace {
    keyspace: KeyspaceId,
    length: u32,
    first_position: u64,
    offset: u64,
}

/// Totals of one keyspace in an extent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    /// Bytes of its blocks in the file.
    pub stored_bytes: u64,
    /// Bytes of its documents, uncompressed.
    pub documents_bytes: u64,
}

/// An open extent.
#[derive(Debug)]
pub(crate) struct Extent {
    pub number: u64,
    pub path: PathBuf,
    /// The segments that the extent took over, ascending.
    pub segments: Box<[u64]>,
    /// Totals by keyspace.
    pub contents: FxHashMap<KeyspaceId, Contents>,
    pub file_bytes: u64,
    file: File,
    /// Sorted by keyspace and first position.
    blocks: Box<[BlockPlace]>,
}

impl Extent {
    pub fn path(directory: &Path, number: u64) -> PathBuf {
        directory.join(format!("{number:012}.extent"))
    }

    /// Opens an extent that was completely written.
    pub fn open(directory: &Path, number: u64, segments: Vec<u64>) -> Result<Self> {
        let path = Self::path(directory, number);
        let corrupt = |offset_bytes, found: &str| StorageError::Corrupt {
            file: path.clone(),
            offset_bytes,
            found: found.to_owned(),
        };
        let file = files::find(&path)?;
        let file = file.ok_or_else(|| corrupt(0, "the extent is missing, though the manifest names it"))?;
        // Reads of blocks are scattered, and scans ask for read-ahead themselves. A failure of the advice does no harm.
        let _ = rustix::fs::fadvise(&file, 0, None, Advice::Random);
        let io = |error| StorageError::io(&path, error);
        let file_bytes = file.metadata().map_err(io)?.len();
        if file_bytes < FILE_HEADER_BYTES + TRAILER_BYTES {
            return Err(corrupt(0, "an extent shorter than its header and trailer"));
        }
        let mut header = [0; FILE_HEADER_BYTES as usize];
        file.read_exact_at(&mut header, 0).map_err(io)?;
        if header != file_header(number) {
            return Err(corrupt(0, "not the header of this extent"));
        }
        let trailer_at = file_bytes - TRAILER_BYTES;
        let mut trailer = [0; TRAILER_BYTES as usize];
        file.read_exact_at(&mut trailer, trailer_at).map_err(io)?;
        let (directory_at, length, checksum) =
            read_trailer(&trailer).ok_or_else(|| corrupt(trailer_at, "not the trailer of an extent"))?;
        if directory_at.checked_add(u64::from(length)) != Some(trailer_at) {
            return Err(corrupt(trailer_at, "a trailer that does not lead to the directory"));
        }
        let mut encoded = vec![0; length as usize];
        file.read_exact_at(&mut encoded, directory_at).map_err(io)?;
        if bunko_checksum::crc32c(&encoded) != checksum {
            return Err(corrupt(directory_at, "a directory that fails its checksum"));
        }
        let (blocks, contents) =
            decode_directory(&encoded).ok_or_else(|| corrupt(directory_at, "a malformed directory"))?;
        Ok(Self { number, path, segments: segments.into(), contents, file_bytes, file, blocks })
    }

    /// The number of the block that may hold the keyspace's document from that log position; `None` if no block can.
    pub fn block_of(&self, keyspace: KeyspaceId, position: u64) -> Option<usize> {
        let behind =
            self.blocks.partition_point(|block| (block.keyspace, block.first_position) <= (keyspace, position));
        let index = behind.checked_sub(1)?;
        (self.blocks[index].keyspace == keyspace).then_some(index)
    }

    /// Reads and verifies a block.
    pub fn read_block(&self, index: usize) -> Result<Block> {
        let place = self.blocks[index];
        let mut stored = vec![0; place.length as usize];
        self.file.read_exact_at(&mut stored, place.offset).map_err(|error| StorageError::io(&self.path, error))?;
        Block::decode(&stored).map_err(|found| self.corrupt(index, found))
    }

    /// Asks the operating system to read ahead for a scan, from a block on. Returns the number of the first block
    /// after that.
    pub fn read_ahead(&self, from: usize) -> usize {
        let start = self.blocks[from].offset;
        let behind = self.blocks[from..].partition_point(|block| block.offset < start + READ_AHEAD_BYTES);
        let _ = rustix::fs::fadvise(&self.file, start, std::num::NonZero::new(READ_AHEAD_BYTES), Advice::WillNeed);
        from + behind.max(1)
    }

    /// The error for a damaged block.
    pub fn corrupt(&self, block: usize, found: &str) -> StorageError {
        StorageError::Corrupt {
            file: self.path.clone(),
            offset_bytes: self.blocks[block].offset,
            found: found.to_owned(),
        }
    }

    /// Bytes that a block takes in the file.
    pub fn stored_bytes(&self, block: usize) -> u64 {
        u64::from(self.blocks[block].length)
    }

    /// The blocks' numbers and keyspaces, in order of keyspaces and log positions.
    pub fn blocks(&self) -> impl Iterator<Item = (usize, KeyspaceId)> {
        self.blocks.iter().enumerate().map(|(index, block)| (index, block.keyspace))
    }

    /// Bytes of all its documents.
    pub fn documents_bytes(&self) -> u64 {
        self.contents.values().map(|contents| contents.documents_bytes).sum()
    }
}

fn file_header(number: u64) -> [u8; FILE_HEADER_BYTES as usize] {
    let mut header = [0; FILE_HEADER_BYTES as usize];
    header[..8].copy_from_slice(MAGIC);
    header[8..16].copy_from_slice(&number.to_le_bytes());
    let checksum = bunko_checksum::crc32c(&header[..16]);
    header[16..].copy_from_slice(&checksum.to_le_bytes());
    header
}

fn read_trailer(trailer: &[u8; TRAILER_BYTES as usize]) -> Option<(u64, u32, u32)> {
    let u32_at = |at: usize| Some(u32::from_le_bytes(trailer.get(at..at + 4)?.try_into().ok()?));
    (u32_at(16)? == bunko_checksum::crc32c(&trailer[..16])).then_some(())?;
    Some((u64::from(u32_at(0)?) | u64::from(u32_at(4)?) << 32, u32_at(8)?, u32_at(12)?))
}

type Directory = (Box<[BlockPlace]>, FxHashMap<KeyspaceId, Contents>);

fn decode_directory(mut input: &[u8]) -> Option<Directory> {
    let mut blocks = Vec::new();
    let mut contents: FxHashMap<KeyspaceId, Contents> = FxHashMap::default();
    while !input.is_empty() {
        let keyspace = KeyspaceId(u32::try_from(varint::take(&mut input)?).ok()?);
        let first_position = varint::take(&mut input)?;
        let offset = varint::take(&mut input)?;
        let length = u32::try_from(varint::take(&mut input)?).ok()?;
        let of_keyspace = contents.entry(keyspace).or_default();
        of_keyspace.stored_bytes += u64::from(length);
        of_keyspace.documents_bytes += varint::take(&mut input)?;
        blocks.push(BlockPlace { keyspace, length, first_position, offset });
    }
    let is_sorted = blocks.is_sorted_by_key(|block| (block.keyspace, block.first_position));
    is_sorted.then(|| (blocks.into_boxed_slice(), contents))
}

/// Writes an extent.
pub(crate) struct ExtentWriter {
    number: u64,
    directory: PathBuf,
    temporary: PathBuf,
    file: File,
    /// Bytes written to the file so far.
    written: u64,
    pending: Vec<u8>,
    compressors: Compressors,
    builders: FxHashMap<KeyspaceId, (Compression, BlockBuilder)>,
    blocks: Vec<(BlockPlace, u64)>,
}

impl ExtentWriter {
    pub fn create(directory: &Path, number: u64) -> Result<Self> {
        let temporary = Extent::path(directory, number).with_extension("tmp");
        let file = files::create(&temporary)?;
        Ok(Self {
            number,
            directory: directory.to_owned(),
            temporary,
            file,
            written: 0,
            pending: file_header(number).to_vec(),
            compressors: Compressors::default(),
            builders: FxHashMap::default(),
            blocks: Vec::new(),
        })
    }

    /// Adds a document. The documents of a keyspace must come in the order of the log.
    pub fn push(
        &mut self,
        keyspace: KeyspaceId,
        compression: Compression,
        record: RecordId,
        position: u64,
        document: &[u8],
    ) -> Result<()> {
        let (_, builder) = self.builders.entry(keyspace).or_insert_with(|| (compression, BlockBuilder::default()));
        if !builder.is_empty() && builder.documents_bytes() + document.len() > BLOCK_BYTES {
            self.close_block(keyspace)?;
        }
        if let Some((_, builder)) = self.builders.get_mut(&keyspace) {
            builder.push(position, record, document);
        }
        Ok(())
    }

    fn close_block(&mut self, keyspace: KeyspaceId) -> Result<()> {
        let Some((compression, builder)) = self.builders.get_mut(&keyspace) else { return Ok(()) };
        let start = self.pending.len();
        let (first_position, documents_bytes) = (builder.first_position, builder.documents_bytes() as u64);
        builder
            .finish(*compression, &mut self.compressors, &mut self.pending)
            .map_err(|error| StorageError::io(&self.temporary, std::io::Error::other(error)))?;
        let place = BlockPlace {
            keyspace,
            length: (self.pending.len() - start) as u32,
            first_position,
            offset: self.written + start as u64,
        };
        debug_assert!(place.length as usize > HEADER_BYTES, "a block is not empty");
        self.blocks.push((place, documents_bytes));
        if self.pending.len() > WRITE_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.file.write_all(&self.pending).map_err(|error| StorageError::io(&self.temporary, error))?;
        self.written += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    /// Makes the extent durable under its name; `None`, without a file, if no document was added.
    pub fn finish(mut self, segments: Vec<u64>) -> Result<Option<Extent>> {
        let mut keyspaces: Vec<_> = self.builders.keys().copied().collect();
        keyspaces.sort_unstable();
        for keyspace in keyspaces {
            if self.builders.get(&keyspace).is_some_and(|(_, builder)| !builder.is_empty()) {
                self.close_block(keyspace)?;
            }
        }
        if self.blocks.is_empty() {
            return Ok(None);
        }
        self.blocks.sort_unstable_by_key(|(place, _)| (place.keyspace, place.first_position));
        let directory_at = self.written + self.pending.len() as u64;
        let start = self.pending.len();
        for (place, documents_bytes) in &self.blocks {
            let numbers = [
                u64::from(place.keyspace.0),
                place.first_position,
                place.offset,
                place.length.into(),
                *documents_bytes,
            ];
            for number in numbers {
                varint::put(&mut self.pending, number);
            }
        }
        let length = (self.pending.len() - start) as u32;
        let checksum = bunko_checksum::crc32c(&self.pending[start..]);
        let trailer_start = self.pending.len();
        self.pending.extend_from_slice(&directory_at.to_le_bytes());
        self.pending.extend_from_slice(&length.to_le_bytes());
        self.pending.extend_from_slice(&checksum.to_le_bytes());
        let checksum = bunko_checksum::crc32c(&self.pending[trailer_start..]);
        self.pending.extend_from_slice(&checksum.to_le_bytes());
        self.flush()?;
        let is_synced = !planted::active(Bug::SegmentBeforeExtent);
        if is_synced {
            self.file.sync_all().map_err(|error| StorageError::io(&self.temporary, error))?;
        }
        files::rename(&self.temporary, &Extent::path(&self.directory, self.number))?;
        if is_synced {
            files::sync_directory(&self.directory)?;
        }
        Extent::open(&self.directory, self.number, segments).map(Some)
    }
}

impl Drop for ExtentWriter {
    /// Removes the file of an unfinished extent, for example on a full disk. After the rename there is no file to
    /// remove.
    fn drop(&mut self) {
        let _ = files::remove(&self.temporary);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_store::Location;

    const RECORDS: [KeyspaceId; 2] = [KeyspaceId(3), KeyspaceId(9)];

    fn document(number: u64) -> Vec<u8> {
        format!("document {number} ").repeat(40).into_bytes()
    }

    fn written(directory: &Path) -> Extent {
        let mut writer = ExtentWriter::create(directory, 7).expect("created");
        for number in 0..400_u64 {
            let keyspace = RECORDS[number as usize % 2];
            writer.push(keyspace, Compression::Lz4, RecordId(number), number * 700, &document(number)).expect("room");
        }
        writer.finish(vec![0, 1]).expect("written").expect("not empty")
    }

    #[test]
    fn documents_are_found_by_keyspace_and_place() {
        let directory = tempfile::tempdir().expect("temporary directory");
        drop(written(directory.path()));
        let extent = Extent::open(directory.path(), 7, vec![0, 1]).expect("opens");
        assert!(extent.blocks().count() > 10);
        for number in 0..400_u64 {
            let [own, other] = if number % 2 == 0 { RECORDS } else { [RECORDS[1], RECORDS[0]] };
            let document = document(number);
            let location = Location { position: number * 700, length: document.len() as u32, checksum: 0 };
            let found = |keyspace| {
                let block = extent.block_of(keyspace, location.position)?;
                extent.read_block(block).expect("whole").document(location).map(<[u8]>::to_vec)
            };
            assert_eq!((found(own), found(other)), (Some(document), None));
        }
        assert_eq!(extent.block_of(KeyspaceId(4), 700), None);
        let documents: u64 = (0..400).map(|number| document(number).len() as u64).sum();
        assert_eq!(extent.documents_bytes(), documents);
        assert!(extent.file_bytes < documents / 2);
    }

    #[test]
    fn a_flipped_byte_anywhere_is_found_at_opening_or_reading() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = written(directory.path()).path;
        let whole = std::fs::read(&path).expect("readable");
        for at in (0..whole.len()).step_by(97).chain(whole.len() - 60..whole.len()) {
            let mut flipped = whole.clone();
            flipped[at] ^= 0x04;
            std::fs::write(&path, &flipped).expect("written");
            let outcome = Extent::open(directory.path(), 7, vec![0, 1])
                .and_then(|extent| extent.blocks().try_for_each(|(block, _)| extent.read_block(block).map(drop)));
            assert!(matches!(outcome, Err(StorageError::Corrupt { .. })), "byte {at}");
        }
    }

    #[test]
    fn nothing_is_left_of_an_extent_without_documents() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let writer = ExtentWriter::create(directory.path(), 1).expect("created");
        assert!(writer.finish(vec![4]).expect("finishes").is_none());
        assert_eq!(std::fs::read_dir(directory.path()).expect("readable").count(), 0);
    }
}
