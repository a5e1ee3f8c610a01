//! The default engine: locations and keys in an LSM tree, documents in the log.
//!
//! As in WiscKey (FAST '16), keys and values are separate: one LSM tree maps record ids to locations in the log, and
//! index keys to record ids. Its sequence numbers are the log's LSNs, so a snapshot is an LSN. Documents stay in the
//! log until their segment is full; then the live ones move into a compressed extent and keep their locations.
//!
//! A location stays the document's name for good, wherever its bytes are: a read looks up the extent that took the
//! segment over, and searches the position in it. So moving documents changes no tree, and an old location is never
//! wrong. The memtables are this crate's own (`memtable`), and the newest arrangement of memtables and tables is one
//! value that is replaced as a whole (`state`). Files that an earlier process left are put aside when the trees are
//! opened, and removed before the first one is written (`leftovers`).
//!
//! **Invariant:** the tree is flushed only inside a checkpoint, after the log has been synced past all that it holds.
//! **Invariant:** neither a write nor a point read takes a lock of the tree, which the tree may hold while it waits for
//! the disk.
//! **Invariant:** a version that an open view sees is never forgotten.
//! **Invariant:** replaying a record that the tree already holds changes nothing.
#![forbid(unsafe_code)]

mod accounts;
mod backlog;
mod blocks;
mod compression;
mod cooling;
mod cursor;
mod documents;
mod dropped;
mod engine;
mod extents;
mod hints;
mod kept_log;
mod key;
mod key_leaves;
mod key_value;
mod key_walk;
mod keys;
mod leaf_walk;
mod leaves;
mod leftovers;
mod lone_table;
mod memtable;
mod merge_choice;
mod merging;
mod reader;
mod reclaim;
mod record_lookups;
mod row_cache;
mod space;
mod staging;
mod state;
mod status;
mod table_run;
mod tree_files;
mod tree_values;
mod view;

pub use compression::Compression;
pub use cooling::COOLING_BYTES_MAX;
pub use engine::{LsmOptions, NAME, kind};
