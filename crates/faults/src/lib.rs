//! Tests of the data after a failed file call and after a power cut: a workload that covers everything that writes, a
//! model of the data that it should leave, and a server in this process.
//!
//! - `tests/every_call.rs`: the k-th call fails, for every k and in every way.
//! - `tests/power_cuts.rs`: any part of the unsynced changes is lost.
//!
//! Both need the feature `injected`; `tests/faults/run` builds them so.
#![forbid(unsafe_code)]

pub mod check;
pub mod model;
pub mod server;
pub mod transaction;
pub mod workload;
