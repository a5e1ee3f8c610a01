//! The log shown as MongoDB's oplog, `local.oplog.rs`.
//!
//! Nothing but the log itself is written for it: [`Entries`] makes entries from log records when they are read. An
//! update's entry has the whole document, or a delta if that is shorter. Both can be applied repeatedly.
//!
//! A log record has no namespace, no UUID, and no `_id` of a deleted document. While a history is kept, `catalog` adds
//! them to each batch as notes, which no engine sees (`notes.rs` there). Every reader gets its entries from one
//! function, `entry::tell`: a read from either end ([`Entries`]), a follower ([`Feed`]), and a count ([`EntryCount`],
//! which remembers the number of entries in each full part of the log, so that statistics read only its two ends).
//!
//! An entry's time is the second of its record, with the lower half of its position as the increment. Where that half
//! wraps, the log begins a new second (`append.rs` of `store`), so times ascend.
//!
//! **Invariant:** every reader sees the same entries, whichever way it reads.
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
pub use entry::{Change, Entry, Happening, shown_term};
pub use feed::{Feed, Reach, check_streams};
