//! Time series collections: their options, and the buckets that measurements are packed into.
//!
//! A bucket is a document of collection `system.buckets.NAME` with the measurements of one source and one span of time,
//! a column for each field. It has MongoDB's layout, version 1: columns are documents from row number to value.
//! Measurements come out ordered by time.
//!
//! **Invariant:** pure: no store, no clock; ids and limits are handed in.
#![forbid(unsafe_code)]

mod bucket;
mod bucket_filter;
mod column_bounds;
mod measurement;
mod options;
mod unpack;

pub use bucket::{Bucket, MEASUREMENTS_MAX};
pub use bucket_filter::bucket_filter;
pub use bucket_filter::source_path as path_in_source;
pub use measurement::Measurement;
pub use options::{Granularity, TimeSeries};
pub use unpack::Unpacked;

/// What the name of a time series' collection of buckets begins with, behind the database.
pub const BUCKETS_PREFIX: &str = "system.buckets.";
