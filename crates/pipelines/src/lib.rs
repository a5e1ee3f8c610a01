//! Pipelines between a command and the catalog: the collections, views and facts of the server that they read, and the
//! collections that they write. `aggregate` has the stages that depend on their input only.
//!
//! [`Aggregation`] reads a pipeline over a name, which is followed through views to a collection, or to a collection
//! that is not stored ([`unstored`]). A stage that begins a pipeline with the server's own knowledge is one file and
//! one line in [`source_stages`]. [`PipelineWrite`] is the end of a pipeline that writes.
//!
//! This crate knows no command and no connection: [`PipelineContext`] and [`StageClient`] name what it needs of them.
#![forbid(unsafe_code)]

mod aggregation;
mod collection_statistics;
mod context;
pub mod each_stage;
pub mod operation_description;
pub mod oplog;
mod planned;
mod resolved;
mod searched_collection;
pub mod session_collections;
pub mod source_stages;
mod sources;
mod surroundings;
mod unindexed;
pub mod unstored;
pub mod vector_search;
pub mod view_definition;
mod writes;

pub use aggregation::{Aggregated, Aggregation};
pub use collection_statistics::{CollectionStatistics, smallest_integer, write_missing};
pub use context::{PipelineContext, StageClient};
pub use planned::{all_of, no_collection_near};
pub use resolved::{Below, behind_views, overrides_view};
pub use sources::PipelineSources;
pub use surroundings::Surroundings;
pub use unindexed::direction;
pub use writes::{PipelineWrite, WriteContext};
