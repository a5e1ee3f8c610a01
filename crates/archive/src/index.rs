//! The place of each unit in a stream of this crate, so that one namespace can be read without the rest.
//!
//! The index follows the units, in a place that other programs ignore. An uncompressed stream has no such place: the
//! classic tool would refuse bytes after its last block.

mod container;

use crate::compression::Compression;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, MAX_INTERNAL_DOCUMENT_BYTES, ValueRef};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

/// The tag of units that belong to no namespace: the prelude.
pub const NO_TAG: u32 = u32::MAX;
/// Version of the index's document.
const VERSION: i32 = 1;
/// Bytes of an encoded unit: its length, its content's length, and its tag, four little-endian bytes each.
const UNIT_BYTES: usize = 12;

/// One independently compressed piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Offset in the file, in bytes.
    pub out_offset: u64,
    /// Length in the file, in bytes.
    pub out_bytes: u32,
    /// Length before compression, in bytes.
    pub raw_bytes: u32,
    /// Tag of its namespace: a position in [`Index::tags`], or [`NO_TAG`].
    pub tag: u32,
}

/// The units of a file, and their namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// Units in the order of the file, without gaps.
    pub units: Vec<Unit>,
    /// Database and collection by tag.
    pub tags: Vec<(String, String)>,
}

/// Reads the index at the end of a file; `None` if there is none.
/// # Errors
/// `InvalidData` if the index is damaged; the error of reading.
pub fn read(file: &File) -> io::Result<Option<Index>> {
    let Some(document) = container::find(file)? else { return Ok(None) };
    let index = DocumentRef::parse(&document).ok().and_then(Index::decode);
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, "the index at the file's end is not one of ours");
    index.map(Some).ok_or_else(damaged)
}

/// The bytes after the units. Empty if the index would be larger than a document may be (from about 1.3 million units
/// on): such a stream is still decoded in parallel, but only as a whole.
pub(crate) fn encode(index: &Index, compression: Compression) -> Vec<u8> {
    let document = index.encode();
    if document.len() > MAX_INTERNAL_DOCUMENT_BYTES {
        return Vec::new();
    }
    container::enclose(&document, &index.units, compression)
}

impl Index {
    fn encode(&self) -> Vec<u8> {
        let tags: ArrayBuf = self.tags.iter().flat_map(|(database, collection)| [database, collection]).collect();
        let mut units = Vec::with_capacity(self.units.len() * UNIT_BYTES);
        for unit in &self.units {
            for number in [unit.out_bytes, unit.raw_bytes, unit.tag] {
                units.extend_from_slice(&number.to_le_bytes());
            }
        }
        DocumentBuf::new()
            .with("version", VERSION)
            .with("tags", &tags)
            .with("units", ValueRef::Binary { subtype: 0, bytes: &units })
            .into_bytes()
    }

    fn decode(document: DocumentRef<'_>) -> Option<Self> {
        let (Some(ValueRef::Int32(VERSION)), Some(ValueRef::Binary { bytes, .. })) =
            (document.get("version"), document.get("units"))
        else {
            return None;
        };
        let names = document.get("tags")?.as_array()?;
        let names = names.iter().map(|name| name.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()?;
        let tags: Vec<_> = names.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
        let mut out_offset = 0;
        let mut units = Vec::with_capacity(bytes.len() / UNIT_BYTES);
        for record in bytes.chunks_exact(UNIT_BYTES) {
            let number = |at: usize| u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]]);
            let unit = Unit { out_offset, out_bytes: number(0), raw_bytes: number(4), tag: number(8) };
            if unit.tag != NO_TAG && unit.tag as usize >= tags.len() {
                return None;
            }
            out_offset += u64::from(unit.out_bytes);
            units.push(unit);
        }
        let whole = names.len() % 2 == 0 && bytes.len() % UNIT_BYTES == 0;
        whole.then_some(Self { units, tags })
    }

    /// A reader of the units that belong to no namespace or to one that `keep` (database, collection) accepts, still
    /// compressed: for [`crate::compression::open`] and then [`crate::archive::Reader::open_selection`].
    pub fn select(&self, file: File, mut keep: impl FnMut(&str, &str) -> bool) -> Selection {
        let kept: Vec<bool> = self.tags.iter().map(|(database, collection)| keep(database, collection)).collect();
        let mut stretches = Vec::<Stretch>::new();
        for unit in &self.units {
            if unit.tag != NO_TAG && !kept.get(unit.tag as usize).is_some_and(|kept| *kept) {
                continue;
            }
            let end = unit.out_offset + u64::from(unit.out_bytes);
            match stretches.last_mut() {
                Some(last) if last.end == unit.out_offset => last.end = end,
                _ => stretches.push(Stretch { begin: unit.out_offset, end }),
            }
        }
        Selection { file, stretches, current: 0 }
    }
}

/// Reads selected stretches of a file one after another.
#[derive(Debug)]
pub struct Selection {
    file: File,
    stretches: Vec<Stretch>,
    current: usize,
}

/// Unread part of a run of units, as offsets in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    begin: u64,
    end: u64,
}

impl Selection {
    /// Number of bytes that are still to be read.
    pub fn remaining_bytes(&self) -> u64 {
        self.stretches[self.current..].iter().map(|stretch| stretch.end - stretch.begin).sum()
    }
}

impl Read for Selection {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(stretch) = self.stretches.get_mut(self.current) else { return Ok(0) };
        let length = (stretch.end - stretch.begin).min(into.len() as u64) as usize;
        if length == 0 {
            return Ok(0);
        }
        let length = self.file.read_at(&mut into[..length], stretch.begin)?;
        if length == 0 {
            let message = format!("the file ends at {} bytes, before a unit of its index", stretch.begin);
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
        }
        stretch.begin += length as u64;
        if stretch.begin == stretch.end {
            self.current += 1;
        }
        Ok(length)
    }
}
