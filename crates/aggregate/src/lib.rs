//! Aggregation pipelines: a table of stages, and streams of documents.
//!
//! A [`Pipeline`] is parsed once; [`Pipeline::split_for_planner`] hands its leading filters, sort, skip and limit to
//! the query planner; [`Pipeline::open`] puts the rest on top of the plan's documents.
//!
//! - **Rewrites** move the work to where fewer documents are: see `rewrite`.
//! - **Pulled or visited.** A stream is pulled document by document, or visited: a visited document is lent from the
//!   scan's block through all stages that only look at it ([`DocumentStream::visit`]). A `$match` that is pulled visits
//!   the stream below it part by part (`visit_part`), so that only matching documents are copied.
//! - **Only needed fields.** A stage learns which fields the later stages read (`Stage::read_only`); `$unwind` copies
//!   no others. A `$group` that reads nothing around the unwound array gets document and element apart (`StandIn` of
//!   `expression`), so no document is written for an element.
//! - **Other collections** come from [`Sources`], which `command` implements over catalog and planner. Parsing notes
//!   all of them; one snapshot is taken when the first one is opened. A pipeline inside a stage is parsed when it is
//!   opened, so the values of `let` are constants of its plan.
//! - **Metadata** that `$meta` reads is at hand while stages look at a document (`metadata.rs` of `expression`), and
//!   travels in the document's first field where a stage keeps documents back.
//! - **Filters** of pipelines and of finds are parsed by one function, `query::parse_filter`, which compiles `$expr`.
//!   [`Rewrites::Off`] (the failpoint `disablePipelineOptimization`) leaves all rewrites out, so that
//!   `crates/cli/tests/all/pipelines_agree` can compare.
//!
//! **Invariant:** a stage holds no documents. The stream that [`Stage::open`] makes gathers them, within the memory
//! that the operation allows a stage, or on disk.
//! **Invariant:** a stage's table entry says whether it compares strings (`StringUse`); a test compares that with its
//! results.
#![forbid(unsafe_code)]

mod added_filters;
mod effect;
mod environment;
mod equality_join;
mod involved;
mod join_table;
mod joined_path;
mod metadata;
mod near_search;
mod pipeline;
mod rewrite;
mod rule_set;
mod sources;
mod stage;
mod stage_fields;
mod stage_run;
mod stages;
mod stream;
mod sub_pipeline;
mod thread_stack;
mod unwinding;
mod write_stage;

pub use effect::{Effect, Joined, JoinedSide};
pub use environment::{Environment, SUB_PIPELINE_DEPTH_MAX};
pub use involved::involved_collections;
pub use metadata::Carried;
pub use near_search::GeoNear;
pub use pipeline::{Pipeline, PlannerPart, stage_field};
pub use rewrite::StepsLeft;
pub use rule_set::{Rewrites, RuleSet};
pub use sources::{
    Access, LookupVisitor, Lookups, NoSources, ScoredDocuments, Searched, SourceName, SourceStage, Sources,
};
pub use stage::{Plannable, Reads, Stage, is_known_stage};
pub use stage_run::StageRun;
pub use stream::{DocumentStream, Documents, Flow};
pub use thread_stack::THREAD_STACK_BYTES;
pub use write_stage::{Merge, OutTarget, WhenMatched, WhenNotMatched, WriteStage};
