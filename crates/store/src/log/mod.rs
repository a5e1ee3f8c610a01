//! The append-only log: journal, oplog and document store in one.
//!
//! Records are framed in [`record`], live in preallocated [`segment`] files, get their position one by one
//! ([`append`]), and reach the kernel ([`group_write`]) and the disk ([`group_commit`]) in groups. Several may count as
//! one ([`chain`]). [`recovery`] finds the end after a crash.

mod append;
mod chain;
mod group_commit;
mod group_write;
mod history;
mod preallocate;
mod read;
mod record;
mod recovery;
mod segment;
mod walk;
mod way;

pub use append::{Log, LogOptions, LogStatistics};
pub use group_commit::DurabilityCallback;
pub use history::{Chained, History, Moment, Record};
pub(crate) use record::HEADER_BYTES as RECORD_HEADER_BYTES;
pub(crate) use recovery::recover;
pub use recovery::{Cut, RecoveredLog, Recovery};
pub(crate) use segment::first_record;
pub use segment::{SEGMENT_BYTES, segment_of};
