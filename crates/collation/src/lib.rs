//! Collations: how MongoDB's collation documents are read, and the order of strings that they ask for.
//!
//! [`parse`] takes a collation document; what comes of it is a [`StringOrder`], whose specification is the document with
//! all defaults filled in, as `listCollections` and `listIndexes` show it.
//!
//! The order is ICU's, from its tables for Rust (ICU4X). MongoDB's tables are those of ICU 57, and ours are newer: common
//! characters are in the same order, newer characters and some tailorings are not. Normalization is always on, as
//! ICU4X knows no other way; texts whose accents stand in an unusual order are therefore the only ones that
//! `normalization: false` would treat otherwise.
#![forbid(unsafe_code)]

mod icu;
mod locales;
mod specification;

use bunko_bson::{DocumentRef, StringOrder};
use bunko_errors::Result;

/// The version that MongoDB shows for its collations. A dump or a driver that compares versions must find this one; that our
/// sort keys are others is [`SORT_KEYS`]'s to say.
pub const VERSION: &str = "57.1";

/// Which sort keys stand in indexes: a number for each version of the tables. Keys under another number have to be
/// made anew.
pub const SORT_KEYS: i32 = 1;

/// The order that a collation document asks for.
/// # Errors
/// `TypeMismatch`, `IDLUnknownField`, `IDLFailedToParse` and `BadValue` as MongoDB; `IncompatibleCollationVersion` for
/// another version than its own; `CommandNotSupported` for locales and options whose tables we do not have.
pub fn parse(document: DocumentRef<'_>) -> Result<StringOrder> {
    let Some(specification) = specification::Specification::parse(document)? else {
        return Ok(StringOrder::default());
    };
    icu::order(&specification, document)
}
