//! Collations: reads MongoDB's collation documents, and makes the order of strings that they ask for.
//!
//! [`parse`] reads a collation document into a [`StringOrder`], whose specification is the document with all defaults
//! filled in, as `listCollections` and `listIndexes` show it.
//!
//! The order is ICU's, from its tables for Rust (ICU4X). MongoDB uses the tables of ICU 57; Bunko's are newer. Common
//! characters have the same order, while newer characters and some tailorings differ. Normalization is always on,
//! because ICU4X cannot turn it off. `normalization: false` would therefore give another order only for texts whose
//! accents are in an unusual order.
//!
//! Without a collation strings are compared by their bytes. An index with a collation has sort keys in place of
//! strings, and its record says which tables made them ([`SORT_KEYS`]).
//!
//! **Invariant:** the bytes of two sort keys compare as their strings do.
//! **Invariant:** keys of other tables are never compared with keys of the present ones: a start builds such an index
//! again, or refuses if it is the index on `_id`.
#![forbid(unsafe_code)]

mod icu;
mod locales;
mod specification;
mod version;

use bunko_bson::{DocumentRef, StringOrder};
use bunko_errors::Result;

pub use version::VERSION;

/// Version of the sort keys in indexes, one for each version of the tables. Keys of another version must be rebuilt.
pub const SORT_KEYS: i32 = 1;

/// The order that a collation document asks for.
/// # Errors
/// `TypeMismatch`, `IDLUnknownField`, `IDLFailedToParse` and `BadValue` as in MongoDB; `IncompatibleCollationVersion`
/// for any version other than [`VERSION`]; `CommandNotSupported` for locales and options that lack tables here.
pub fn parse(document: DocumentRef<'_>) -> Result<StringOrder> {
    let Some(specification) = specification::Specification::parse(document)? else {
        return Ok(StringOrder::default());
    };
    icu::order(&specification, document)
}
