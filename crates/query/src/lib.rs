//! Plans, explains and executes finds and writes.
//!
//! A [`FindQuery`] becomes a [`Plan`] ([`plan`]), which is opened on a snapshot and yields documents one at a time
//! ([`Execution`]). `{_id: value}` alone needs none of that: [`id_lookup`] and [`fetch_by_id`].
//!
//! **Invariant:** a plan with indexes yields exactly the documents that a collection scan with the filter yields; a
//! property test checks this.
//! **Invariant:** an execution reads one snapshot, whatever is written meanwhile.
//! **Invariant:** an index, a rewrite, memory, worker threads and the form of the request decide how fast an answer
//! comes, never which answer it is (`crates/query/tests/all/plans_agree`, also while others write, and
//! `crates/cli/tests/all/pipelines_agree`).
#![forbid(unsafe_code)]

mod cached_way;
mod contest;
mod count;
mod distinct;
mod distinct_values;
mod effort;
mod equality_lookup;
mod estimates;
mod execution;
mod explain;
mod expr_filter;
mod find_query;
mod footing;
mod hint;
mod id_join;
mod id_lookup;
mod inclusion;
mod lookup_table;
mod near;
mod opening;
mod plan;
mod plan_report;
mod planner;
mod query_settings;
mod query_shape;
mod record_scan;
mod resumable;
mod run;
mod scan_start;
mod stages;
mod stored_functions;
mod tail;
mod wanted_fields;
pub mod write;

pub use count::{CountPlan, count};
pub use distinct::{DistinctValues, distinct, distinct_of_plan, distinct_query};
pub use equality_lookup::EqualityLookup;
pub use execution::Execution;
pub use explain::{
    Explained, LogRead, LogRun, Origin, Verbosity, append_spilled, explain_count, explain_log_read, explain_plan,
    failed_run,
};
pub use expr_filter::{CollectionScans, ExprInFilter, QueryScope, parse_filter, parse_plan_filter, parse_stage_filter};
pub use find_query::{Distinct, DistinctOf, FindQuery, KeyBounds, parse_count, parse_limit};
pub use footing::{Footing, Standing};
pub use hint::Hint;
pub use id_join::IdJoin;
pub use id_lookup::{fetch_by_id, id_lookup};
pub use inclusion::Inclusion;
pub use near::{NearAsked, NearOutput, NearSearch};
pub use plan::{Plan, PlanChoice};
pub use plan_report::{FinishedRun, PlanReport};
pub use planner::plan;
pub use query_settings::{AllowedIndexes, QuerySettings};
pub use query_shape::{QueryShape, is_constant_expression};
pub use resumable::ResumableScan;
pub use run::ExecutionStatistics;
pub use scan_start::ScanStart;
pub use stored_functions::SystemFunctions;
pub use tail::Tail;
