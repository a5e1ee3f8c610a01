//! Statistics of measurements: latency histograms that merge exactly, estimates with intervals, comparisons with
//! significance, steadiness, trends, changes over time, and the search for the highest rate.
//!
//! **Invariant:** pure. Nothing here reads a clock, a file or a socket; the same samples give the same result.
#![forbid(unsafe_code)]

mod centre;
mod change_point;
mod estimate;
mod histogram;
mod interval_log;
mod rate_search;
mod ratio;
mod steadiness;
mod student;
mod trend;

pub use change_point::ChangePoint;
pub use estimate::{Estimate, SAMPLES_MIN};
pub use histogram::{CurvePoint, HistogramError, LatencyHistogram, LatencySummary};
pub use interval_log::IntervalLogWriter;
pub use rate_search::{RateSearch, RateSearchOptions, Trial};
pub use ratio::{Ratio, SYMMETRIC_MAX, Significance};
pub use steadiness::Steadiness;
pub use trend::Trend;
