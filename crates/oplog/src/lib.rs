//! The log shown as MongoDB's oplog, `local.oplog.rs`.
//!
//! Nothing but the log itself is written for it: [`Entries`] makes entries from log records when they are read. An
//! update's entry has the whole document, or a delta if that is shorter. Both can be applied repeatedly.
//!
//! **Invariant:** an entry has the same time whenever it is read. No two entries have equal times, and times ascend in
//! the order in which writes became visible.
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
