//! The engine that keeps documents and ordered indexes in memory under a stated cap, and nothing on disk.
//!
//! A record store is a tree of pages by record id, an index an ordered map; both hold versions by LSN, so a snapshot is
//! an LSN. What a newer version hides stands in a queue until no view needs it.
//!
//! **Invariant:** a version that an open view sees is never forgotten, and one that none sees is given back without
//! waiting for another write of its key.
//! **Invariant:** every byte that a version or an entry takes is counted once, and taken off when it goes.
//! **Invariant:** a cursor holds no lock between calls, and lends documents without copying them.
#![forbid(unsafe_code)]

mod cost;
mod cursor;
mod document;
mod engine;
mod garbage;
mod index;
mod keyspaces;
mod records;
mod view;

pub use engine::{MemoryEngine, MemoryOptions, NAME, kind};
