//! Sorting, partitions and spools beyond a stage's memory.
//!
//! A [`Sorter`] is the one way that documents are sorted; it writes sorted runs when its memory is full, and merges
//! them. [`Partitions`] spread records by their hash, for stages that take them up part by part. [`Spool`] keeps
//! records in their order and reads them as often as wanted. [`Positioned`] reads records by their positions, from
//! several places of one file at once. All of them write blocks of records, compressed with lz4, to files of the
//! operation's scratch space, which go when their owner does.
//!
//! **Limit:** a [`Sorter`] or [`Spool`] asks `OperationContext::stage_bytes_now` after each record and writes its
//! records to a file when they take more memory; an operation without scratch space fails there.
//!
//! **Invariant:** records are read back in the order in which they were written, however much memory there was.
//! **Invariant:** no length in a file is believed before it is checked against the bytes that are there.
//! **Invariant:** a scratch file has no name, so it goes with its operation or its process, however these end.
#![forbid(unsafe_code)]

mod arena;
mod directory;
mod merge;
mod partitions;
mod positioned;
mod queue;
mod record_file;
mod sorter;
mod spilled;
mod spool;

pub use directory::ScratchDirectory;
pub use partitions::{PARTITIONS, Partitions};
pub use positioned::{Lent, Positioned, PositionedWriter};
pub use queue::QueueWriter;
pub use record_file::RecordReader;
pub use sorter::{Sorted, Sorter};
pub use spilled::Spilled;
pub use spool::{Spool, SpoolReader};
