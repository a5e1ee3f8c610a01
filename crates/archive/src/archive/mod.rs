//! The archive: a whole dump in one stream, its namespaces interleaved in blocks.
//!
//! ```text
//! magic | header document | one document per namespace | FFFFFFFF
//! then blocks:   header {db, collection, EOF: false, CRC: 0} | documents | FFFFFFFF
//! and at last per namespace: header {db, collection, EOF: true, CRC: of all its documents} | FFFFFFFF
//! ```
//! The oplog is database "", collection "oplog". Views have an empty block and an end. The classic tool refuses unknown
//! fields in the header of a block, and ignores them in the prelude.
//! Source: archives that `mongodump --archive` wrote.

mod block;
mod error;
mod prelude;
mod reader;
#[cfg(test)]
mod tests;

pub use block::{begin_block, end_block, end_of_namespace};
pub use error::{ArchiveError, Reason};
pub use prelude::{Header, NamespaceEntry, Prelude};
pub use reader::{ArchivePiece, Reader};

/// First four bytes of an archive, little-endian.
pub const MAGIC: u32 = 0x8199_e26d;
/// The only version of the format.
pub const VERSION: &str = "0.1";
