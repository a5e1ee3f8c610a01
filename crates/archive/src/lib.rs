//! Formats of dumps: what `mongodump` writes and `mongorestore` reads, and streams that are compressed and read by
//! several threads.
//!
//! **Invariant:** documents pass as bytes. They are cut apart by their lengths and never decoded here; whoever wants
//! them checked to the leaves parses them (`bunko_bson::DocumentRef::parse`).
//! **Invariant:** no length that was read is believed before it is checked against a limit, and nothing is allocated
//! for it before.
//! **Invariant:** what is damaged is refused with the place where it stands; a stream that ends early is never taken
//! for a whole one.
#![forbid(unsafe_code)]

pub mod archive;
pub mod bson_file;
pub mod compression;
pub mod crc64;
pub mod directory;
mod documents;
pub mod index;
pub mod metadata;

pub use documents::{Documents, LengthError, MAX_DOCUMENT_BYTES, PART_BYTES, Split, each_document, split_document};
