//! Time series collections: a view on a collection of buckets, with its own way of writing.
//!
//! `create` creates `system.buckets.NAME` with the option `timeseries`, and a view NAME that unpacks its buckets. Reads
//! work as for all views. [`SeriesWrites`] turns writes of measurements into writes of buckets: an insert (`insert.rs`)
//! groups its measurements by source, adds them to the source's open bucket (`OpenBuckets`) while `Bucket` of `timeseries`
//! takes them, and then begins a new one.
//!
//! This crate knows no command: `command` parses requests, and asks once whether a name is a time series.
#![forbid(unsafe_code)]

mod definition;
mod delete;
mod index_specs;
mod insert;
mod listing;
mod open_buckets;
mod partial_filter;
mod series;
mod update;
mod writes;

pub use definition::{bucket_index, bucket_options, view};
pub use delete::check_find_and_modify;
pub use index_specs::{bucket_key, of_buckets, of_measurements};
pub use listing::{described_options, shown_index, shown_options};
pub use open_buckets::OpenBuckets;
pub use series::{Series, buckets_of, find};
pub use writes::SeriesWrites;
