//! Aggregation pipelines: a table of stages over a document stream.
//!
//! A [`Pipeline`] is parsed once; [`Pipeline::split_for_planner`] hands its leading filters, sort, skip and limit to
//! the query planner; [`Pipeline::open`] puts the rest on top of the plan's documents.
//!
//! **Invariant:** a stage holds no documents. What it gathers lives in the stream that [`Stage::open`] makes, which
//! stays within the memory that its [`Environment`] allows.
#![forbid(unsafe_code)]

mod environment;
mod pipeline;
mod stages;
mod stream;

pub use environment::{Environment, STAGE_MEMORY_BYTES_MAX};
pub use pipeline::{Pipeline, PlannerPart};
pub use stages::{Plannable, Reads, Stage};
pub use stream::{DocumentStream, Documents, Flow};
