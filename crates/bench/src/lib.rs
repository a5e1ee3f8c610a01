//! The performance lab: scenarios, load generators, verdicts.
//!
//! A [`scenario`] runs against [`Target`]s: any servers of the MongoDB wire protocol, or servers that the caller starts
//! for it. The lab measures, counts and reads back the stored documents, judges whether the figures mean anything, and
//! makes a [`Report`].
//!
//! **Invariant:** the lab is a client. It knows `bunko_client`, `bunko_tools` and `/proc`, never a server's code, so
//! that its figures mean the same for every target. It drops only what it created.
//! **Invariant:** a figure whose run has a finding against it is not called valid.
#![forbid(unsafe_code)]

mod clock;
mod database;
mod error;
mod find_max;
mod judge;
mod measure;
mod observer;
pub mod operation;
mod reference;
mod run;
pub mod scenario;
mod server;
mod target;

pub use bunko_report::Report;
pub use database::{DATABASE, Existing};
pub use error::BenchError;
pub use find_max::{FindMaxOptions, FoundRate, RateTrial, find_max};
pub use observer::{Observer, Pace, StepName, Tick, Unobserved};
pub use run::{AllocationPlace, RunOptions, WorkerPosition, check, run};
pub use target::{Data, EmbeddedServer, Running, Target, TargetServer};
