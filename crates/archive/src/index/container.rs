//! Layout of an index in a file.
//!
//! Its document is followed by a trailer: the document's CRC-64 (8 bytes), its length (4), and a mark (8). All numbers
//! are little-endian.
//! - zstd: both in a skippable frame, then the seek table of zstd's own seekable format in another. The table's entries
//!   are the units, and an entry without content for the first of these two frames.
//! - LZ4: both in a skippable frame.
//! - gzip: both in the extra fields `BI` of empty members, as many as are needed: all but the first are full.
//!
//! Source: RFC 8878, section 3.1.2; "Zstandard Seekable Format" 0.1.0; RFC 1952, section 2.3.1.1.

use super::Unit;
use crate::compression::Compression;
use crate::compression::gzip::{EMPTY_BEGIN_BYTES, EMPTY_END, empty_member};
use crate::crc64;
use bunko_bson::MAX_INTERNAL_DOCUMENT_BYTES;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Last bytes of the trailer.
const MARK: [u8; 8] = *b"BUNKOIX1";
const TRAILER_BYTES: usize = 20;
/// First bytes of the skippable frames: one for the index's document, one for the seek table.
const SKIP_INDEX: u32 = 0x184d_2a5d;
const SKIP_SEEK_TABLE: u32 = 0x184d_2a5e;
/// Magic number and length of a skippable frame.
const SKIP_HEADER_BYTES: usize = 8;
/// Last bytes of a seek table.
const SEEKABLE_MAGIC: u32 = 0x8f92_eab1;
/// Number of frames, a byte of flags, the magic number.
const SEEK_FOOTER_BYTES: usize = 9;
/// Flag: each entry of a seek table has a checksum.
const SEEK_CHECKSUMS: u8 = 0x80;
/// Name of the index's extra field in gzip members.
const FIELD: [u8; 2] = *b"BI";
/// Bytes of the index in one member; an extra field has room for 65,531.
const FIELD_BYTES: usize = 65_000;

/// Encodes the bytes after the units, which other programs ignore.
pub(super) fn enclose(document: &[u8], units: &[Unit], compression: Compression) -> Vec<u8> {
    let mut payload = document.to_vec();
    payload.extend_from_slice(&crc64::checksum(document).to_le_bytes());
    payload.extend_from_slice(&(document.len() as u32).to_le_bytes());
    payload.extend_from_slice(&MARK);
    let mut out = Vec::new();
    match compression {
        Compression::None => {}
        Compression::Gzip => {
            let (first, full) = payload.split_at(payload.len() - payload.len() / FIELD_BYTES * FIELD_BYTES);
            for piece in [first].into_iter().chain(full.chunks(FIELD_BYTES)).filter(|piece| !piece.is_empty()) {
                empty_member(&mut out, FIELD, piece);
            }
        }
        Compression::Lz4 => skippable(&mut out, SKIP_INDEX, &payload),
        Compression::Zstd { .. } => {
            skippable(&mut out, SKIP_INDEX, &payload);
            let table = seek_table(units, out.len());
            skippable(&mut out, SKIP_SEEK_TABLE, &table);
        }
    }
    out
}

fn skippable(out: &mut Vec<u8>, magic: u32, content: &[u8]) {
    out.extend_from_slice(&magic.to_le_bytes());
    out.extend_from_slice(&(content.len() as u32).to_le_bytes());
    out.extend_from_slice(content);
}

fn seek_table(units: &[Unit], index_bytes: usize) -> Vec<u8> {
    let mut table = Vec::with_capacity(8 * units.len() + 8 + SEEK_FOOTER_BYTES);
    for unit in units {
        table.extend_from_slice(&unit.out_bytes.to_le_bytes());
        table.extend_from_slice(&unit.raw_bytes.to_le_bytes());
    }
    table.extend_from_slice(&(index_bytes as u32).to_le_bytes());
    table.extend_from_slice(&0_u32.to_le_bytes());
    table.extend_from_slice(&(units.len() as u32 + 1).to_le_bytes());
    table.push(0);
    table.extend_from_slice(&SEEKABLE_MAGIC.to_le_bytes());
    table
}

/// Finds the document of a file's index; `None` if there is none.
pub(super) fn find(file: &File) -> io::Result<Option<Vec<u8>>> {
    let file = Tail { file, end: file.metadata()?.len() };
    let Some(last) = file.before(file.end, EMPTY_END.len())? else { return Ok(None) };
    if last.ends_with(&MARK) {
        return file.document(file.end);
    }
    if last == EMPTY_END {
        return file.members();
    }
    if last.ends_with(&SEEKABLE_MAGIC.to_le_bytes()) {
        let flags = last[last.len() - 5];
        let Some(footer) = file.before(file.end, SEEK_FOOTER_BYTES)? else { return Ok(None) };
        let entries = u64::from(u32::from_le_bytes([footer[0], footer[1], footer[2], footer[3]]));
        let entry_bytes = if flags & SEEK_CHECKSUMS == 0 { 8 } else { 12 };
        let table_bytes = entries * entry_bytes + (SKIP_HEADER_BYTES + SEEK_FOOTER_BYTES) as u64;
        return file.end.checked_sub(table_bytes).map_or(Ok(None), |end| file.document(end));
    }
    Ok(None)
}

/// A file that is read from its end.
struct Tail<'f> {
    file: &'f File,
    end: u64,
}

impl Tail<'_> {
    /// Reads the given number of bytes before an offset; `None` if the file has fewer.
    fn before(&self, offset: u64, bytes: usize) -> io::Result<Option<Vec<u8>>> {
        let Some(begin) = offset.checked_sub(bytes as u64) else { return Ok(None) };
        let mut read = vec![0; bytes];
        self.file.read_exact_at(&mut read, begin)?;
        Ok(Some(read))
    }

    /// Reads the document whose trailer ends at this offset; `None` if no trailer does.
    fn document(&self, end: u64) -> io::Result<Option<Vec<u8>>> {
        let Some(trailer) = self.trailer(end)? else { return Ok(None) };
        let document = self.before(end - TRAILER_BYTES as u64, trailer.document_bytes)?;
        trailer.check(document).map(Some)
    }

    /// Reads the document from the extra fields of the last gzip members; `None` if they have none.
    fn members(&self) -> io::Result<Option<Vec<u8>>> {
        let mut end = self.end - EMPTY_END.len() as u64;
        let Some(trailer) = self.trailer(end)? else { return Ok(None) };
        let mut missing = trailer.document_bytes + TRAILER_BYTES;
        let mut pieces = Vec::new();
        while missing > 0 {
            let length = missing.min(FIELD_BYTES);
            let Some(piece) = self.before(end, length)? else { return Err(trailer.damaged()) };
            let begin = end - length as u64;
            missing -= length;
            // Between two fields: the end of one member and the beginning of the next.
            let between = (EMPTY_BEGIN_BYTES + EMPTY_END.len()) as u64;
            match begin.checked_sub(between) {
                Some(before) => end = before,
                None if missing == 0 => {}
                None => return Err(trailer.damaged()),
            }
            pieces.push(piece);
        }
        let mut payload: Vec<u8> = pieces.into_iter().rev().flatten().collect();
        payload.truncate(trailer.document_bytes);
        trailer.check(Some(payload)).map(Some)
    }

    fn trailer(&self, end: u64) -> io::Result<Option<Trailer>> {
        let Some(bytes) = self.before(end, TRAILER_BYTES)? else { return Ok(None) };
        let (Some((crc, rest)), true) = (bytes.split_first_chunk(), bytes.ends_with(&MARK)) else { return Ok(None) };
        let document_bytes = u32::from_le_bytes([rest[0], rest[1], rest[2], rest[3]]) as usize;
        let trailer = Trailer { crc: u64::from_le_bytes(*crc), document_bytes, end };
        if document_bytes > MAX_INTERNAL_DOCUMENT_BYTES { Err(trailer.damaged()) } else { Ok(Some(trailer)) }
    }
}

/// Trailer of an index's document.
struct Trailer {
    crc: u64,
    document_bytes: usize,
    /// Offset of its end in the file.
    end: u64,
}

impl Trailer {
    fn check(&self, document: Option<Vec<u8>>) -> io::Result<Vec<u8>> {
        document.filter(|document| crc64::checksum(document) == self.crc).ok_or_else(|| self.damaged())
    }

    fn damaged(&self) -> io::Error {
        let message = format!("the index that ends at offset {} is damaged", self.end);
        io::Error::new(io::ErrorKind::InvalidData, message)
    }
}
