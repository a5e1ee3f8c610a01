//! A memory-mapped B+tree, in the role of MMAPv1: LMDB, uncompressed, with the page cache as its cache.
//!
//! What came since the last checkpoint lies in a memtable; a checkpoint writes the newest version of each entry into
//! LMDB, in order of keys, and commits durably. Without the sync LMDB would corrupt on power loss; the log covers what
//! lies between two checkpoints. A view is a memtable's versions over one committed state of LMDB, which is pinned by
//! a read transaction: one for each checkpoint, not one for each view.
//!
//! LMDB writes; reads walk the mapped pages themselves (`page`), because LMDB's C code believes what a damaged page
//! says, and because a committed page may be read by any number of threads without a lock or a transaction.
//!
//! - **One LMDB database for each keyspace**, so that dropping one hands its pages to the free list without touching
//!   its entries, and [`Engine::space`](bunko_store::Engine::space) counts pages instead of guessing. The price is
//!   LMDB's table of open handles; see [`KEYSPACES_MAX`].
//! - **Point reads** of 1 KB documents, their checksums verified, cost 0.9 to 1.1 times what `mdb_get` in an open read
//!   transaction does, unverified, for 300 MB and 1 GB of warm documents; 1.2 times for 20 MB, and 1.6 times for 2 MB,
//!   where the processor's caches hold everything and the checksum shows (`examples/point_reads.rs`, which measures it).
//! - **The file grows ahead** in steps as MMAPv1's did, see `growth`. It never shrinks; space inside of it goes back to
//!   the filesystem as holes, see `free_pages`.
//! - **What does not fit into the map** is refused before it is kept, see `room`.
//! - **Every entry has a checksum** (`stored`), and every page is checked for order and completeness before a key is
//!   called absent. What is not noticed: a page number that was changed into that of an older version of the same page.
//! - **SIGBUS** (the disk failed under the map, or the file was cut) ends the process with a message, see `bus_error`.
//!
//! **Invariant:** LMDB is written to only inside a checkpoint, after the log has been synced past all it holds.
//! **Invariant:** a read takes no lock but the memtable's, and never calls LMDB.
//! **Invariant:** a committed state and its pages stay as they are until the last view of it is gone.

mod arrangement;
mod bus_error;
mod committed;
mod cursor;
mod data_file;
mod engine;
mod free_pages;
mod growth;
mod memtable;
mod merge;
mod meta;
mod page;
mod room;
mod stored;
mod tree;
mod tree_walk;
mod view;
mod writer;

pub use data_file::KEYSPACES_MAX;
pub use engine::{MmapEngine, MmapOptions, NAME, kind};
