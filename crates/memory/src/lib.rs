//! The engine that keeps documents and ordered indexes in memory, under a stated limit, and nothing on disk.
//!
//! A record store is a tree of pages by record id, and an index is an ordered map. Both hold versions by LSN, so a
//! snapshot is an LSN. Versions behind newer ones wait in a queue until no view needs them.
//!
//! **Invariant:** a version that an open view sees is never forgotten, and a version that no view sees is freed without
//! waiting for another write of its key.
//! **Invariant:** every byte of a version or an entry is counted once, and subtracted when it is freed.
//! **Invariant:** a cursor holds no lock between calls, and lends documents without copying them.
//! **Invariant:** an entry stands in the queue once while it has something to forget, and otherwise not at all.
#![forbid(unsafe_code)]

mod cost;
mod cursor;
mod document;
mod engine;
mod garbage;
mod index;
mod key;
mod keyspaces;
mod records;
mod size;
mod view;

pub use engine::{MemoryEngine, MemoryOptions, NAME, kind};
