//! Formats of dumps: the files of `mongodump` and `mongorestore`, and compressed streams that several threads write and
//! read.
//!
//! **Invariant:** documents pass as bytes. They are separated by their lengths and never decoded here; callers that
//! need every value checked parse them (`bunko_bson::DocumentRef::parse`).
//! **Invariant:** every length that is read is checked against a limit before it is used or memory is allocated for it.
//! **Invariant:** damage is an error that names its place; a stream that ends early is never taken for a whole one.
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
