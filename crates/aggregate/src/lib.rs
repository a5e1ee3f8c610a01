//! Aggregation pipelines: a table of stages, and streams of documents.
//!
//! A [`Pipeline`] is parsed once; [`Pipeline::split_for_planner`] hands its leading filters, sort, skip and limit to
//! the query planner; [`Pipeline::open`] puts the rest on top of the plan's documents.
//!
//! **Invariant:** a stage holds no documents. The stream that [`Stage::open`] makes gathers them, within the memory
//! that the operation allows a stage, or on disk.
#![forbid(unsafe_code)]

mod environment;
mod equality_join;
mod involved;
mod joined_path;
mod metadata;
mod pipeline;
mod sources;
mod stage_fields;
mod stage_run;
mod stages;
mod stream;
mod sub_pipeline;
mod write_stage;

pub use environment::{Environment, Rewrites, SUB_PIPELINE_DEPTH_MAX};
pub use involved::involved_collections;
pub use metadata::Carried;
pub use pipeline::{Pipeline, PlannerPart, stage_field};
pub use sources::{
    Access, LookupVisitor, Lookups, NoSources, ScoredDocuments, Searched, SourceName, SourceStage, Sources,
};
pub use stage_run::StageRun;
pub use stages::{GeoNear, Merge, Plannable, Reads, Stage, WhenMatched, WhenNotMatched, is_known_stage};
pub use stream::{DocumentStream, Documents, Flow};
pub use write_stage::{OutTarget, WriteStage};
