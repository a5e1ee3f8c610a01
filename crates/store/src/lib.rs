//! The log, and the contract of the engines that are views of it.
//!
//! Every write is one record of an append-only log ([`Log`]); an [`Engine`] applies records in order of their
//! [`Lsn`], serves snapshots and checkpoints. [`Store`] ties the two: append, apply, acknowledge, recover.
//!
//! - **The log** is a row of files of 64 MiB, the segments. A record has a header with a checksum, the effects under
//!   one checksum, and the documents, each under a checksum that stands in its effect: so a document is verified alone.
//!   A replaced document is written to the log again.
//! - **A keyspace** is a number, for the records of one collection or the keys of one index. Each keyspace is in one
//!   engine; an effect in the log says in which, when the keyspace is created. The store's own engine has all others
//!   and the catalog.
//! - **A route** of a keyspace to another engine is made once its creation is in the log, never before, because the log
//!   may refuse it. After a replay the catalog has the last word ([`Store::settle`]).
//! - **A write** that changes only keyspaces of a volatile engine leaves an empty record, so that it has its place in
//!   the order; if a history is kept, the whole record ([`Keeping`]). A store whose own engine is volatile touches no
//!   file.
//!
//! **Invariant:** an engine's durable state never points past the durable log.
//! **Invariant:** a document's bytes are written to the log once, under a checksum of their own.
//! **Invariant:** encode, append, apply, acknowledge, in this order. The locks of the touched keys are held over append
//! and apply, so each key's order in the log is its order in the engine.
//! **Invariant:** a batch that the log refused changes nothing, neither routes nor counts.
//! **Invariant:** everything below the watermark is applied, without gaps; snapshots see nothing beyond it.
//! **Invariant:** a batch with notes is in the log even if it changes nothing.
//! **Invariant:** a segment goes only after a durable manifest says that every engine has left it, and its file is used
//! again only after the last reader.
//! **Invariant:** bytes of the log are appended only where their blocks are already on the disk.
//! **Invariant:** disk of the reserve is taken only by batches that make room, and no other batch is admitted until it
//! is whole.
//! **Invariant:** a start that is refused changes nothing in the directory.
//! **Invariant:** after a failed write or sync of the log nothing is acknowledged and no checkpoint follows; `cli` ends
//! the process. A panic of a background thread is such a failure.
//! **Invariant:** storage errors know no error code of a server.

mod archive_readers;
mod archiving;
mod background;
mod batch;
mod beginning_again;
mod bell;
mod chain;
mod changed_records;
pub mod checked_documents;
mod checkpoint;
mod commit_point;
mod data_directory;
mod delegate;
mod described;
mod disk_room;
mod effects;
mod engine;
mod engines;
mod error;
pub mod failpoint;
pub mod files;
mod followers;
mod history;
mod image;
mod journal;
mod keyspace_map;
mod lag;
mod latencies;
mod lock_table;
mod log;
mod manifest;
mod membership;
mod merge;
mod opening;
mod overlay;
mod pace;
mod panics;
pub mod planted;
mod position;
mod reclaim;
mod relief;
mod remembered;
mod role;
mod rollback;
mod secondary;
mod snapshots;
mod staged;
mod statistics;
mod status;
mod still_files;
mod store;
mod terms;
pub mod varint;
mod vote;
mod watermark;
mod whole;

pub use archiving::LogPart;
pub use batch::Batch;
pub use beginning_again::begin_again;
pub use bell::{Bell, Listening};
pub use bunko_host::Clock;
pub use bunko_replica::{MemberId, Position, Terms, Vote};
pub use changed_records::{ChangedRecords, Changes};
pub use data_directory::check_place;
pub use described::{DescribedDirectory, describe};
pub use disk_room::{DiskReserve, FreeBytes, ReserveHook, ReserveOptions};
pub use effects::{Effect, Effects, Noted, Presence, Statement};
pub use engine::{
    Added, CopyIntoImage, Direction, Effort, Engine, KeptForViews, KeyCursor, KeyRange, Medium, Reclaimed,
    RecordCursor, RecordRange, Space, TakeRecord, View,
};
pub use engines::{EngineKind, EngineTable, Keeping, OpenEngine, Opening, Survival};
pub use error::StorageError;
pub use files::make_directory;
pub use followers::{Following, NamesOf, Quiet};
pub use image::{
    IDLE_MAX as IMAGE_IDLE_MAX, IMAGE_RANGE_BYTES, Image, ImageFile, ImageList, ImageState, ReceivedImage, Wanted,
    finish_installing,
};
pub use keyspace_map::KeyspaceMap;
pub use lag::{Lag, STALL, STALLS_MAX};
pub use latencies::LatencyCounts;
#[cfg(debug_assertions)]
pub use lock_table::fix_stripes;
pub use lock_table::{LockTable, Locked, StripeNumbers};
pub use log::{
    Appended, ArchivedLog, ArchivedRecord, Chained, Cut, DurabilityCallback, History, Log, LogOptions, LogStatistics,
    Moment, RawReader, Record, RecoveredLog, Recovery, SEGMENT_BYTES, begin_with_same_record, extend_image,
    is_same_record, last_record_before, read_records, segment_of, walk_archived,
};
pub use membership::Places;
pub use opening::Replays;
pub use overlay::{NOT_LOGGED, NetEffects, Overlay, part_with_room};
pub use pace::{Pace, Urgency, busy_threads};
pub use position::{KeyspaceId, Location, Lsn, RecordId};
pub use role::Role;
pub use rollback::Rollback;
pub use secondary::Applying;
pub use snapshots::Snapshot;
pub use staged::Staged;
pub use statistics::KeyspaceStatistics;
pub use status::StoreStatistics;
pub use still_files::StillFiles;
pub use store::{BackgroundErrorHook, CommitPassedHook, LogHandle, Store, StoreOptions};
pub use whole::Whole;

/// Result of storage operations.
pub type Result<T, E = StorageError> = std::result::Result<T, E>;
