//! Tests of the data after a failed file call and after a power cut: a workload that covers everything that writes, a
//! model of the data that it should leave, and a server in this process.
//!
//! - `tests/every_call.rs`: the k-th call fails, for every k and in every way.
//! - `tests/dump_restore.rs`: the same for the files of a dump and of a restore's state.
//! - `tests/power_cuts.rs`: any part of the unsynced changes is lost.
//! - `tests/meetings.rs`: threads are held between two steps, at failpoints.
//!
//! The first three need the feature `injected`; `tests/faults/run` builds them so, with `rustix` over the C library and
//! segments of 2 MiB. A build without that feature has none of this.
#![forbid(unsafe_code)]

pub mod check;
pub mod model;
pub mod server;
pub mod transaction;
pub mod workload;
pub mod writes;
