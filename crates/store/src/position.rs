//! Positions and ids: of log records, keyspaces, records, documents.

/// A log sequence number: the position of a record's first byte in the endless log, in bytes.
///
/// Positions only grow, so an LSN orders records and finds them too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lsn(pub u64);

/// A record store or a sorted index; ids are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyspaceId(pub u32);

/// A record within its record store; ascending in order of insertion, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId(pub u64);

impl RecordId {
    /// The first record id of a record store.
    pub const FIRST: Self = Self(1);
}

/// Position of a document's bytes in the log, and their checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// Position of the first byte in the log.
    pub position: u64,
    /// Length in bytes.
    pub length: u32,
    /// CRC-32C of the bytes.
    pub checksum: u32,
}

impl Location {
    /// Encoded size in bytes.
    pub const ENCODED_BYTES: usize = 16;

    /// The fixed-size form that engines keep.
    pub fn encode(self) -> [u8; Self::ENCODED_BYTES] {
        let mut bytes = [0; Self::ENCODED_BYTES];
        bytes[..8].copy_from_slice(&self.position.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.length.to_le_bytes());
        bytes[12..].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }

    /// Decodes the form of [`Self::encode`]; `None` if the length is wrong.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::ENCODED_BYTES] = bytes.try_into().ok()?;
        let (position, rest) = bytes.split_at(8);
        let (length, checksum) = rest.split_at(4);
        Some(Self {
            position: u64::from_le_bytes(position.try_into().ok()?),
            length: u32::from_le_bytes(length.try_into().ok()?),
            checksum: u32::from_le_bytes(checksum.try_into().ok()?),
        })
    }
}
