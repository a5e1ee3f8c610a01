//! The log, and the contract of the engines that are views of it.
//!
//! Every write is one record of an append-only log ([`Log`]); an [`Engine`] applies records in order of their
//! [`Lsn`], serves snapshots and checkpoints. [`Store`] ties the two: append, apply, acknowledge, recover.
//!
//! **Invariant:** an engine's durable state never points past the durable log.
//! **Invariant:** a document's bytes are written to the log once, under a checksum of their own.

mod background;
mod batch;
mod bell;
mod chain;
mod checkpoint;
mod data_directory;
mod delegate;
mod directories;
mod disk_room;
mod effects;
mod engine;
mod engines;
mod error;
pub mod failpoint;
mod followed;
mod followers;
mod history;
mod journal;
mod keyspace_map;
mod lag;
mod latencies;
mod lock_table;
mod log;
mod manifest;
mod merge;
mod overlay;
mod pace;
mod panics;
pub mod planted;
mod position;
mod reclaim;
mod relief;
mod remembered;
mod snapshots;
mod staged;
mod statistics;
mod status;
mod still_files;
mod store;
pub mod sync;
pub mod varint;
mod watermark;
mod whole;

pub use batch::Batch;
pub use bell::{Bell, Listening};
pub use data_directory::check_place;
pub use directories::make_directory;
pub use disk_room::{DiskReserve, FreeBytes, ReserveHook, ReserveOptions};
pub use effects::{Effect, Effects, Noted, Presence, Statement};
pub use engine::{
    Added, Direction, Effort, Engine, KeptForViews, KeyCursor, KeyRange, Place, Reclaimed, RecordCursor, RecordRange,
    Space, TakeRecord, View,
};
pub use engines::{EngineKind, EngineTable, Keeping, OpenEngine, Opening, Survival};
pub use error::StorageError;
pub use followed::{ChangedRecords, Changes};
pub use followers::{Following, NamesOf, Quiet};
pub use keyspace_map::KeyspaceMap;
pub use lag::{Lag, STALL, STALLS_MAX};
pub use latencies::LatencyCounts;
pub use lock_table::{LockTable, Locked};
pub use log::{
    Chained, Cut, DurabilityCallback, History, Log, LogOptions, LogStatistics, Moment, Record, RecoveredLog, Recovery,
    SEGMENT_BYTES, segment_of,
};
pub use overlay::{NOT_LOGGED, Net, Overlay, part_with_room};
pub use pace::{Pace, Urgency, busy_threads};
pub use position::{KeyspaceId, Location, Lsn, RecordId};
pub use snapshots::Snapshot;
pub use staged::Staged;
pub use statistics::KeyspaceStatistics;
pub use status::StoreStatistics;
pub use still_files::StillFiles;
pub use store::{BackgroundErrorHook, Clock, LogHandle, Store, StoreOptions};
pub use whole::Whole;

/// Result of storage operations.
pub type Result<T, E = StorageError> = std::result::Result<T, E>;
