//! The default engine: locations and keys in LSM trees, documents where the log put them.
//!
//! As in WiscKey (FAST '16) keys and values live apart: one LSM tree maps record ids to locations in the log and index
//! keys to record ids, with the log's LSN as its sequence number, so a snapshot is an LSN. Documents stay in the log;
//! compressed extents and space reclaim will take a sealed segment's live documents from here.
//!
//! **Invariant:** the tree is flushed only inside a checkpoint, after the log has been synced past all it holds.
//! **Invariant:** neither a write nor a point read takes a lock of the tree, which it holds while it waits for the disk.
#![forbid(unsafe_code)]

mod cursor;
mod engine;
mod key;
mod key_value;
mod memtable;
mod row_cache;
mod state;
mod view;

pub use engine::{LsmEngine, LsmOptions, NAME};
