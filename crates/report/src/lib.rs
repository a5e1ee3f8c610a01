//! Results of benchmarks: the model, verdicts, comparisons, and reports in HTML, JSON and CSV.
//!
//! [`result`] is the model. It is written as JSON, and read back for comparisons and merges. Everything else here is a
//! function of it.
//!
//! **Invariant:** this crate measures nothing and knows no server.
//! **Invariant:** histograms are added bucket by bucket; percentiles are never averaged.
#![forbid(unsafe_code)]

// The fixture is also compiled into an example outside this crate.
#[cfg(test)]
extern crate self as bunko_report;

pub mod compare;
mod conclusions;
pub mod csv;
mod error;
#[cfg(test)]
mod fixture;
pub mod history;
pub mod html;
pub mod interval_log;
mod json;
mod machine_pauses;
pub mod merge;
mod number;
mod recommendation;
pub mod result;
mod set_columns;
mod step_columns;
mod step_label;
mod step_summary;
mod storage_rows;
mod tail_trend;
pub mod text;
mod verdict;

pub use error::ReportError;
pub use result::Report;
pub use tail_trend::p999_trend;
