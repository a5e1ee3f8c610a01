//! The performance lab: scenarios, load generators, verdicts.
//!
//! A scenario runs against a [`Target`]: any server of the MongoDB wire protocol, or one that the caller starts for
//! it. It measures, counts what the server kept, judges whether the figures mean anything, and reports.
//!
//! **Invariant:** the lab is a client. It knows `bunko_client` and `/proc`, never a server's code, so that its figures
//! mean the same for every target. It drops only collections that it created.
#![forbid(unsafe_code)]

mod dataset;
mod environment;
mod error;
mod histogram;
mod insert_matrix;
pub mod operation;
mod reference;
mod report;
mod server_stats;
mod target;
mod verdict;

pub use dataset::{Compressible, Dataset, Shape};
pub use environment::{ClientMachine, ServerDescription};
pub use error::BenchError;
pub use histogram::{LatencyHistogram, LatencySummary};
pub use insert_matrix::{InsertMatrixOptions, insert_matrix, insert_matrix_observed};
pub use reference::{E1, ReferenceRow};
pub use report::{CellRun, Report, Scenario};
pub use server_stats::{CpuReading, ServerProcess};
pub use target::{EmbeddedServer, Running, Target};
pub use verdict::{Evidence, Finding, judge};
