//! The log shown as MongoDB's oplog, `local.oplog.rs`.
//!
//! Nothing is written for it but the log itself: [`Entries`] makes entries of the log's records as they are asked for.
//! An update's entry has the whole document, or a delta where that is shorter; either may be applied twice.
//!
//! **Invariant:** an entry has the same time whenever it is read, no two have the same, and they ascend in the order in
//! which writes became visible.
//! Source: the fields of entries as `local.oplog.rs` of MongoDB 8.0 shows them.
#![forbid(unsafe_code)]

mod count;
mod entries;
mod entry;
mod feed;

pub use count::EntryCount;
pub use entries::Entries;
pub use entry::{Change, Entry, Happening, TERM};
pub use feed::{Feed, Reach};
