//! BSON without copies: borrowed documents, order, key strings and Extended JSON.
//!
//! **Invariant:** a [`DocumentRef`] made by [`DocumentRef::parse`] is well formed to its leaves, so nothing above this
//! crate checks a length again. One made by [`DocumentRef::trusted`] (from bytes that Bunko wrote and whose checksum
//! held) behaves in this way too. On malformed bytes its iteration stops early. It never panics and never reads outside
//! the bytes.
//!
//! Owned values keep sub-documents as bytes too: one comparison, one key string and one hash serve both forms.
//!
//! **Invariant:** the byte order of two key strings is the order of their values.
//! **Invariant:** [`text::ValueText`] is the one printer of values in messages.
#![forbid(unsafe_code)]

pub mod arithmetic;
pub mod base64;
pub mod datetime;
mod decimal128;
pub mod depth;
mod document;
mod encoded_value;
pub mod extended_json;
mod field_names;
mod hashed_key;
pub mod hexadecimal;
pub mod key_string;
pub mod number;
mod object_id;
pub mod order;
mod reader;
mod skip;
pub mod stored_id;
mod string_order;
pub mod text;
mod validate;
mod value;
mod writer;

pub use decimal128::{Decimal128, Rounding};
pub use document::{ArrayBuf, DocumentBuf};
pub use encoded_value::EncodedValue;
pub use field_names::FieldNames;
pub use hashed_key::{hashed_key, hashed_keys_of_equals};
pub use object_id::ObjectId;
pub use reader::{ArrayRef, DocumentRef, Element, Elements, EncodedElement};
pub use string_order::{Collator, StringOrder, StringUse};
pub use validate::BsonError;
pub use value::{BinarySubtype, Timestamp, Type, Value, ValueRef};
pub use writer::Writer;

/// Largest document that a user may store, in bytes.
/// Source: MongoDB limits, "BSON Document Size".
pub const MAX_USER_DOCUMENT_BYTES: usize = 16 * 1024 * 1024;
/// Largest document inside a message: a user document and the server's own fields around it.
pub const MAX_INTERNAL_DOCUMENT_BYTES: usize = MAX_USER_DOCUMENT_BYTES + 16 * 1024;
/// Greatest number of documents and arrays around a value in a parsed document.
pub const MAX_DEPTH_ACCEPTED: usize = 200;
/// Greatest number of levels that the server puts around a client's document.
pub const LEVELS_AROUND_MAX: usize = 20;
/// Deepest nesting that a stored document may have.
pub const MAX_DEPTH_STORED: usize = 180;
