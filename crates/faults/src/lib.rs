//! What becomes of the data when a call on a file fails, and when the power goes: a workload over everything that
//! writes, a model of what it should leave, and a server in this process.
//!
//! - `tests/every_call.rs`: the k-th call fails, for every k and in every way.
//! - `tests/power_cuts.rs`: any part of what was not synced is lost.
//!
//! Both need the feature `injected`; `tests/faults/run` builds them so.
#![forbid(unsafe_code)]

pub mod check;
pub mod model;
pub mod server;
pub mod transaction;
pub mod workload;
