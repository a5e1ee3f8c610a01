//! A memory-mapped B+tree, in the role of MMAPv1: LMDB, uncompressed, with the page cache as its cache.
//!
//! Changes since the last checkpoint are in a memtable. A checkpoint writes the newest version of each entry into LMDB,
//! in order of keys, and commits durably: without the sync LMDB could be corrupt after a power loss, and the log covers
//! the time between two checkpoints. A view consists of a memtable's versions and one committed state of LMDB, which a
//! read transaction pins: one transaction for each checkpoint, not for each view.
//!
//! LMDB only writes. Reads walk the mapped pages directly (`page`), because LMDB's C code trusts damaged pages, and
//! because any number of threads may read a committed page without a lock or a transaction.
//!
//! - **One LMDB database for each keyspace**, so that dropping one hands its pages to the free list without touching
//!   its entries, and [`Engine::space`](bunko_store::Engine::space) counts pages instead of guessing. The price is
//!   LMDB's table of open handles; see [`KEYSPACES_MAX`].
//! - **Point reads** of 1 KB documents, with verified checksums, cost 0.9 to 1.1 times an unverified `mdb_get` in an
//!   open read transaction for 300 MB and 1 GB of warm documents; 1.2 times for 20 MB, and 1.6 times for 2 MB, where
//!   the processor's caches hold everything and the checksum shows (measured by `examples/point_reads.rs`).
//! - **The file grows ahead** in steps as MMAPv1's did, see `growth`. It never shrinks; free space inside it goes back
//!   to the filesystem as holes, see `free_pages`.
//! - **Writes that do not fit into the map** are refused before they are kept, see `room`.
//! - **Every entry has a checksum** (`stored`), and every page is checked for order and completeness before a key is
//!   called absent. Not noticed: a page number that was changed into that of an older version of the same page.
//! - **SIGBUS** (the disk failed under the map, or the file was cut) ends the process with a message, see `bus_error`.
//!
//! **Invariant:** LMDB is written to only inside a checkpoint, after the log has been synced past all that it holds.
//! **Invariant:** a read takes no lock except the memtable's, and never calls LMDB.
//! **Invariant:** a committed state and its pages stay unchanged until its last view is gone.

mod arrangement;
mod bus_error;
mod committed;
mod copy;
mod corruption;
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
mod view;
mod writer;

pub use data_file::KEYSPACES_MAX;
pub use engine::{MmapEngine, MmapOptions, NAME, kind};
