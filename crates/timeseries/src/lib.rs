//! Time series collections: their options, and the buckets that measurements are packed into.
//!
//! A bucket is a document of the collection `system.buckets.NAME`. It has the measurements of one source in one span of
//! time, with a column for each field. The layout is MongoDB's version 1: columns are documents from row numbers to
//! values. Measurements are ordered by time.
//!
//! **Invariant:** pure: no store, no clock; callers pass ids and limits.
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

/// Prefix of the name of a collection of buckets, after the database.
pub const BUCKETS_PREFIX: &str = "system.buckets.";
