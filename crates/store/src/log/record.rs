//! The format of a record in the log.
//!
//! ```text
//! 0  u32  length of the record, header included
//! 4  u32  CRC-32C of bytes 0..4 and 8..44
//! 8  u64  LSN: the record's own position, so stale bytes of a recycled segment never pass for a record
//! 16 u64  LSN up to which the log was synced when this record was written: evidence for recovery
//! 24 u64  wall clock in milliseconds since 1970, for the oplog view
//! 32 u32  length of the effects
//! 36 u32  CRC-32C of the effects; each document's CRC stands among the effects
//! 40 u32  kind; of a record of a chain also, above 8 bits, how many segments before its own the chain began
//! 44      effects, then documents
//! ```
//! Every byte is under exactly one checksum, so a document is verified alone when it is read.
//!
//! Recovery (`recovery`), the history (`history`) and the walk over a segment (`walk`) read it. A change of this
//! format, or of any file in the data directory, raises `FORMAT_VERSION` of the manifest, so that an older program
//! refuses it.

use super::segment::{first_record, segment_of};
use crate::effects::Documents;
use crate::{Effects, Lsn, Statement};

pub(crate) const HEADER_BYTES: usize = 44;

/// Kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Effects and documents.
    Batch,
    /// The end of this segment's records; the log goes on in the next segment.
    Seal,
    /// No contents: the space was reserved and not used. Only the header is written.
    Gap,
    /// The beginning of a term; see `terms`. Its only effect is a note with the term.
    Term,
    /// As [`Kind::Batch`], but the record counts only once its whole chain is in the log.
    Chained {
        /// Position in the chain.
        link: Link,
        /// Number of segments between the chain's first record and this one.
        segments_back: u32,
    },
}

/// Position of a record in its chain. Records of other writers may stand between the records of a chain, but not
/// records of another chain: a first record ends the chain before it, which was abandoned and does not count. So does
/// the record of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    First,
    Middle,
    Last,
}

/// Maximum number of segments that a chain may span, limited by the encoding of the kind.
pub(super) const CHAIN_SEGMENTS_MAX: u64 = 1 << 24;

impl Kind {
    fn encode(self) -> u32 {
        match self {
            Self::Batch => 0,
            Self::Seal => 1,
            Self::Chained { link, segments_back } => (2 + link as u32) | segments_back << 8,
            Self::Gap => 5,
            Self::Term => 6,
        }
    }

    fn decode(encoded: u32) -> Option<Self> {
        let link = match encoded & 0xff {
            0 => return Some(Self::Batch),
            1 => return Some(Self::Seal),
            2 => Link::First,
            3 => Link::Middle,
            4 => Link::Last,
            5 => return Some(Self::Gap),
            6 => return Some(Self::Term),
            _ => return None,
        };
        Some(Self::Chained { link, segments_back: encoded >> 8 })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub length: u32,
    pub lsn: Lsn,
    pub synced: Lsn,
    pub time_ms: u64,
    pub effects_length: u32,
    pub effects_checksum: u32,
    pub kind: Kind,
}

impl Header {
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..4].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.lsn.0.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.synced.0.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.time_ms.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.effects_length.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.effects_checksum.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.kind.encode().to_le_bytes());
        let checksum = checksum(&bytes);
        bytes[4..8].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads the header of a record that should stand at `lsn`; `None` if there is no such header.
    pub fn decode(bytes: &[u8], lsn: Lsn) -> Option<Self> {
        let bytes: &[u8; HEADER_BYTES] = bytes.get(..HEADER_BYTES)?.try_into().ok()?;
        let u32_at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        if u64_at(8) != lsn.0 || u32_at(4) != checksum(bytes) {
            return None;
        }
        let header = Self {
            length: u32_at(0),
            lsn,
            synced: Lsn(u64_at(16)),
            time_ms: u64_at(24),
            effects_length: u32_at(32),
            effects_checksum: u32_at(36),
            kind: Kind::decode(u32_at(40))?,
        };
        (header.length as usize >= HEADER_BYTES + header.effects_length as usize).then_some(header)
    }

    /// The effects of a complete record that begins with this header.
    pub fn effects<'a>(&self, record: &'a [u8]) -> Effects<'a> {
        let (effects, documents) = record[HEADER_BYTES..].split_at(self.effects_length as usize);
        Effects::new(effects, Documents::InARow(documents), self.documents_position())
    }

    /// Bytes of the record that another member gets: of a gap only the header, because what follows has no meaning.
    pub fn shipped_bytes(&self) -> usize {
        if self.kind == Kind::Gap { HEADER_BYTES } else { self.length as usize }
    }

    /// Position of the next record.
    pub fn behind(&self) -> Lsn {
        match self.kind {
            Kind::Seal => Lsn(first_record(segment_of(self.lsn.0) + 1)),
            Kind::Batch | Kind::Term | Kind::Gap | Kind::Chained { .. } => Lsn(self.lsn.0 + u64::from(self.length)),
        }
    }

    /// Whether only zeros follow the last document of a complete record: no checksum covers the padding of a chain's
    /// last record.
    pub fn has_clean_end(&self, record: &[u8]) -> bool {
        let mut effects = self.effects(record);
        effects.by_ref().for_each(drop);
        effects.padding().iter().all(|byte| *byte == 0)
    }

    /// The term that a record with these effects begins; `None` if it names none.
    pub fn term(effects: &Effects<'_>) -> Option<u64> {
        match effects.clone().noted().next()? {
            Statement::Note(content) => content.try_into().ok().map(u64::from_le_bytes),
            _ => None,
        }
    }

    /// Whether the header has a time: in the first records of a chain, the field means something else.
    pub fn is_dated(&self) -> bool {
        matches!(self.kind, Kind::Batch | Kind::Term | Kind::Chained { link: Link::Last, .. })
    }

    /// Position of the record's first document in the log.
    pub fn documents_position(&self) -> u64 {
        self.lsn.0 + HEADER_BYTES as u64 + u64::from(self.effects_length)
    }
}

fn checksum(header: &[u8; HEADER_BYTES]) -> u32 {
    bunko_checksum::crc32c_append(bunko_checksum::crc32c(&header[..4]), &header[8..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_only_read_where_it_belongs() {
        let header = Header {
            length: 100,
            lsn: Lsn(4096),
            synced: Lsn(64),
            time_ms: 12,
            effects_length: 20,
            effects_checksum: 5,
            kind: Kind::Batch,
        };
        let mut bytes = header.encode();
        assert_eq!(Header::decode(&bytes, Lsn(4096)), Some(header));
        assert_eq!(Header::decode(&bytes, Lsn(4097)), None);
        for link in [Link::First, Link::Middle, Link::Last] {
            let chained = Header { kind: Kind::Chained { link, segments_back: 300 }, ..header };
            assert_eq!(Header::decode(&chained.encode(), Lsn(4096)), Some(chained));
        }
        let term = Header { kind: Kind::Term, ..header };
        assert_eq!(Header::decode(&term.encode(), Lsn(4096)), Some(term));
        let gap = Header { kind: Kind::Gap, effects_length: 0, ..header };
        assert_eq!(Header::decode(&gap.encode(), Lsn(4096)), Some(gap));
        bytes[33] ^= 1;
        assert_eq!(Header::decode(&bytes, Lsn(4096)), None);
        assert_eq!(Header::decode(&[0; 100], Lsn(0)), None);
    }
}
