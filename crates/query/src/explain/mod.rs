//! The output of explain, in the shape of MongoDB 8.0.

mod counts;
mod index;
mod room;
mod stages;
mod values;

pub(crate) use counts::counted;
pub(crate) use index::{describe_count, describe_index, describe_index_run, describe_spans};
pub(crate) use room::{Facts, Room};
pub(crate) use stages::{all_trials, run_tree, tree_of};
pub use values::append_spilled;
pub(crate) use values::{append_count, sort_document};

use crate::contest;
use crate::count::CountPlan;
use crate::execution::Execution;
use crate::find_query::FindQuery;
use crate::plan::{DecidedBy, Plan};
use crate::planner;
use crate::run::ExecutionStatistics;
use bunko_bson::{DocumentBuf, Timestamp};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_store::Direction as LogDirection;
use std::time::Duration;

/// The amount of detail in explain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verbosity {
    /// The plan.
    QueryPlanner,
    /// The plan and the statistics of its run.
    ExecutionStats,
    /// As `ExecutionStats`, with the statistics of all plans in the trial.
    AllPlansExecution,
}

impl Verbosity {
    /// Whether the plan has to run to the end before it is explained.
    pub fn runs(self) -> bool {
        self != Self::QueryPlanner
    }
}

/// Returns the failure of an explained run, which MongoDB reports beside the plan.
/// # Errors
/// The failure, if it ends the command and not only the run: the command was killed, or has to be run again elsewhere.
pub fn failed_run(failure: Failure) -> Result<Failure> {
    let ends_command = matches!(
        failure.code(),
        ErrorCode::INTERRUPTED | ErrorCode::INTERRUPTED_AT_SHUTDOWN | ErrorCode::CLIENT_DISCONNECT
    );
    if ends_command || failure.is_too_long() { Err(failure) } else { Ok(failure) }
}

/// The kind of command that a query comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A command that the planner runs.
    Query,
    /// A pipeline whose stages the planner runs all.
    WholePipeline,
}

/// Input of explain.
#[derive(Clone, Copy)]
pub struct Explained<'a> {
    /// `database.collection`.
    pub namespace: &'a str,
    /// The query.
    pub query: &'a FindQuery,
    /// The amount of detail.
    pub verbosity: Verbosity,
    /// Duration of the run, if there was one.
    pub elapsed: Duration,
    /// The failure of the run.
    pub failure: Option<&'a Failure>,
    /// The command that the query comes from.
    pub origin: Origin,
}

/// Explains a find: the fields `explainVersion`, `queryPlanner` and, after a run, `executionStats`. `plan` is `None`
/// for a collection that does not exist; `execution` has run to its end.
pub fn explain_plan(explained: Explained<'_>, plan: Option<&Plan>, execution: Option<&Execution>) -> DocumentBuf {
    let plan = execution.map(Execution::plan).or(plan);
    let room = Room::of_reply();
    let mut reply =
        with_query_planner(explained, plan, &room, |room| stages::winning_plan(explained.query, plan, room));
    if explained.verbosity.runs() {
        let statistics = execution.map(Execution::statistics).unwrap_or_default();
        let run = stages::executed(explained.query, plan, execution.map(Execution::all_statistics), &room);
        append_execution(&mut reply, explained, statistics, &run, (plan, &room));
    }
    reply
}

/// Explains a count, as [`explain_plan`]; `counted` is the result of its run.
pub fn explain_count(
    explained: Explained<'_>,
    plan: Option<&CountPlan>,
    counted: Option<&(u64, Option<Execution>)>,
) -> DocumentBuf {
    let room = Room::of_reply();
    let winning = |room: &Room| counts::winning_count(explained.query, plan, room);
    let mut reply = with_query_planner(explained, plan.and_then(CountPlan::plan), &room, winning);
    if explained.verbosity.runs() {
        let execution = counted.and_then(|(_, execution)| execution.as_ref());
        let statistics = execution.map(Execution::statistics).unwrap_or_default();
        let count = counted.map_or(0, |(count, _)| *count);
        let run = counts::executed_count(explained.query, plan, (execution, count), &room);
        append_execution(
            &mut reply,
            explained,
            ExecutionStatistics { returned: 0, ..statistics },
            &run,
            (plan.and_then(CountPlan::plan), &room),
        );
    }
    reply
}

/// A read of the log in place of a collection scan, which needs no planner.
#[derive(Clone, Copy, Debug)]
pub struct LogRead {
    /// The earliest entry to read, if there is a bound.
    pub from: Option<Timestamp>,
    /// The direction of the read.
    pub direction: LogDirection,
    /// Counts of the read, after it has run to its end.
    pub run: Option<LogRun>,
}

/// Counts of oplog entries in a read of the log.
#[derive(Clone, Copy, Debug)]
pub struct LogRun {
    /// Entries built. Entries that the read skips are not built.
    pub examined: u64,
    /// Entries that passed the query's filter.
    pub returned: u64,
}

/// Explains a read of the log, as [`explain_plan`].
pub fn explain_log_read(explained: Explained<'_>, read: LogRead) -> DocumentBuf {
    let (planned, room) = (LogRead { run: None, ..read }, Room::of_reply());
    let mut reply = with_query_planner(explained, None, &room, |room| stages::log_read(explained.query, planned, room));
    if let Some(run) = read.run {
        let statistics = ExecutionStatistics {
            returned: run.returned,
            docs_examined: run.examined,
            ..ExecutionStatistics::default()
        };
        let run = stages::log_read(explained.query, read, &room);
        append_execution(&mut reply, explained, statistics, &run, (None, &room));
    }
    reply
}

/// `planningStopped` of a filter with very many conditions.
const STOPPED: &str = "the filter has too many conditions for the indexes, so not all ways to use them were compared";

fn with_query_planner(
    explained: Explained<'_>,
    plan: Option<&Plan>,
    room: &Room,
    winning_plan: impl FnOnce(&Room) -> DocumentBuf,
) -> DocumentBuf {
    let mut planner = Facts::new(DocumentBuf::new().with("namespace", explained.namespace), room);
    planner.append_parsed_query("parsedQuery", &explained.query.filter);
    let mut planner = planner.into_document();
    planner.append("indexFilterSet", plan.is_some_and(Plan::is_filtered));
    match plan {
        Some(plan) => contest::append_hashes(&mut planner, plan),
        None => contest::append_hashes_of(&mut planner, explained.query, &[]),
    }
    if let Some(settings) = &explained.query.scope.settings {
        planner.append("querySettings", &settings.document);
    }
    planner.append("optimizationTimeMillis", 0_i32);
    if explained.origin == Origin::WholePipeline {
        planner.append("optimizedPipeline", true);
    }
    let mut planner = planner
        .with("maxIndexedOrSolutionsReached", false)
        .with("maxIndexedAndSolutionsReached", false)
        .with("maxScansToExplodeReached", plan.is_some_and(planner::has_too_many_scans_to_merge))
        .with("prunedSimilarIndexes", false)
        .with("winningPlan", &winning_plan(room))
        .with("rejectedPlans", &stages::rejected_plans(explained.query, plan, room));
    if plan.is_some_and(Plan::is_stopped) {
        planner.append("planningStopped", STOPPED);
    }
    let rejections = plan.map(planner::rejections).unwrap_or_default();
    if !rejections.is_empty() {
        let mut because = DocumentBuf::new();
        for (index, reason) in &rejections {
            because.append(&index.name, reason.to_string().as_str());
        }
        planner.append("rejectedBecause", &because);
    }
    DocumentBuf::new().with("explainVersion", "1").with("queryPlanner", &planner)
}

fn append_execution(
    reply: &mut DocumentBuf,
    explained: Explained<'_>,
    statistics: ExecutionStatistics,
    stages: &DocumentBuf,
    (plan, room): (Option<&Plan>, &Room),
) {
    let mut execution = DocumentBuf::new().with("executionSuccess", explained.failure.is_none());
    if let Some(failure) = explained.failure {
        execution.append("errorMessage", failure.message()).append("errorCode", failure.code().0);
    }
    let mut execution = execution
        .with("nReturned", statistics.returned as i32)
        .with("executionTimeMillis", explained.elapsed.as_millis() as i32)
        .with("totalKeysExamined", statistics.keys_examined as i32)
        .with("totalDocsExamined", statistics.docs_examined as i32)
        .with("executionStages", stages);
    if explained.verbosity == Verbosity::AllPlansExecution {
        let contest = plan.and_then(Plan::contest).filter(|contest| contest.decided_by == DecidedBy::Trial);
        let trials = contest.map(|contest| all_trials(&contest.trials, room));
        execution.append("allPlansExecution", &trials.unwrap_or_default());
    }
    reply.append("executionStats", &execution);
}
