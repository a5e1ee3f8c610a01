//! The append-only log: journal, oplog and document store in one.
//!
//! Records are framed in [`record`], live in preallocated [`segment`] files, get their position one by one
//! ([`append`]), and reach the kernel ([`group_write`]) and the disk ([`group_commit`]) in groups. Several may count as
//! one ([`chain`]). [`recovery`] finds the end after a crash. Other members of a replica set get raw bytes ([`raw`],
//! [`raw_append`]). Backups keep such bytes ([`archived`]).

mod append;
mod archived;
mod chain;
mod committed;
mod group_commit;
mod group_write;
mod history;
mod preallocate;
mod raw;
mod raw_append;
mod raw_places;
mod read;
mod record;
mod recovery;
mod retire;
mod segment;
mod truncate;
mod truncation_intent;
mod walk;
mod way;

pub use append::{Log, LogOptions, LogStatistics};
pub use archived::{
    Appended, ArchivedLog, ArchivedRecord, begin_with_same_record, extend_image, is_same_record, last_record_before,
    read_records, walk_archived,
};
pub(crate) use committed::{Committed, CommittedLog};
pub use group_commit::DurabilityCallback;
pub use history::{Chained, History, Moment, Record};
pub use raw::RawReader;
pub(crate) use record::HEADER_BYTES as RECORD_HEADER_BYTES;
pub use recovery::{Cut, RecoveredLog, Recovery};
pub(crate) use recovery::{OpenChain, Replayed, recover};
pub(crate) use segment::first_record;
pub use segment::{SEGMENT_BYTES, segment_of};
