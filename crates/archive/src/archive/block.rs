//! Blocks of an archive.

use super::Reason;
use crate::documents::TERMINATOR;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};

/// Begins a block with its header. Encoded documents follow, then [`end_block`].
pub fn begin_block(out: &mut Vec<u8>, database: &str, collection: &str) {
    let header = BlockHeader { database, collection, end: End::More };
    out.extend_from_slice(header.encode().as_ref().as_bytes());
}

/// Ends a block.
pub fn end_block(out: &mut Vec<u8>) {
    out.extend_from_slice(&TERMINATOR);
}

/// Ends a namespace: no further block of it follows. `crc` is the checksum of all its documents in the order of the
/// archive ([`crate::crc64`]).
pub fn end_of_namespace(out: &mut Vec<u8>, database: &str, collection: &str, crc: u64) {
    let header = BlockHeader { database, collection, end: End::Last { crc } };
    out.extend_from_slice(header.encode().as_ref().as_bytes());
    out.extend_from_slice(&TERMINATOR);
}

/// Header before a block's documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockHeader<'a> {
    pub(super) database: &'a str,
    pub(super) collection: &'a str,
    pub(super) end: End,
}

/// Whether a block has documents or ends its namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    More,
    Last { crc: u64 },
}

impl<'a> BlockHeader<'a> {
    fn encode(&self) -> DocumentBuf {
        let (eof, crc) = match self.end {
            End::More => (false, 0),
            End::Last { crc } => (true, crc),
        };
        DocumentBuf::new()
            .with("db", self.database)
            .with("collection", self.collection)
            .with("EOF", eof)
            .with("CRC", crc as i64)
    }

    /// Parses strictly: exactly these four fields, with their types.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, Reason> {
        let (mut database, mut collection, mut eof, mut crc) = (None, None, None, None);
        for field in DocumentRef::parse(bytes)? {
            let repeated = match (field.name, field.value) {
                ("db", ValueRef::String(name)) => database.replace(name).is_some(),
                ("collection", ValueRef::String(name)) => collection.replace(name).is_some(),
                ("EOF", ValueRef::Boolean(flag)) => eof.replace(flag).is_some(),
                ("CRC", ValueRef::Int64(value)) => crc.replace(value as u64).is_some(),
                ("db", other) => return Err(misfit("db", "string", other)),
                ("collection", other) => return Err(misfit("collection", "string", other)),
                ("EOF", other) => return Err(misfit("EOF", "bool", other)),
                ("CRC", other) => return Err(misfit("CRC", "long", other)),
                (unknown, _) => return Err(Reason::UnknownField { field: unknown.to_owned() }),
            };
            if repeated {
                return Err(Reason::RepeatedField { field: field.name.to_owned() });
            }
        }
        let missing = |field| Reason::MissingField { field };
        let crc = crc.ok_or(missing("CRC"))?;
        let end = match eof.ok_or(missing("EOF"))? {
            true => End::Last { crc },
            false if crc == 0 => End::More,
            false => return Err(Reason::EarlyCrc { crc }),
        };
        Ok(Self { database: database.ok_or(missing("db"))?, collection: collection.ok_or(missing("collection"))?, end })
    }
}

fn misfit(field: &'static str, expected: &'static str, found: ValueRef<'_>) -> Reason {
    Reason::FieldType { field, expected, found: found.kind().alias() }
}
