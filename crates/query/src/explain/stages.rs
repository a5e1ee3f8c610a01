//! The tree of stages in explain, planned and executed.

use super::{Facts, LogRead, Room};
use crate::find_query::FindQuery;
use crate::plan::{Plan, PlanEstimate, Trial};
use crate::run::StageStatistics;
use crate::stages::{Stage, StageNumber};
use bunko_bson::{ArrayBuf, DocumentBuf};
use bunko_matcher::Expression;
use bunko_store::Direction;

/// Details shown beside a stage's description.
#[derive(Clone, Copy)]
pub(super) enum Detail<'a> {
    Plan,
    Run(&'a [StageStatistics]),
}

/// The estimate of a plan, and the stage at its top.
pub(super) type Estimated<'a> = Option<(&'a PlanEstimate, StageNumber)>;

pub(super) fn winning_plan(query: &FindQuery, plan: Option<&Plan>, room: &Room) -> DocumentBuf {
    let is_cached = plan.and_then(Plan::contest).is_some_and(|contest| contest.is_cached);
    let tree = plan.map_or_else(missing_collection, |plan| whole(query, plan, Detail::Plan, room));
    cached(is_cached).with_tree(tree)
}

/// The plans that lost a trial.
pub(super) fn rejected_plans(query: &FindQuery, plan: Option<&Plan>, room: &Room) -> ArrayBuf {
    let losers = plan.and_then(Plan::contest).into_iter().flat_map(|contest| contest.trials.iter().skip(1));
    let mut rejected = ArrayBuf::new();
    for loser in losers {
        rejected.push(&cached(false).with_tree(whole(query, &loser.plan, Detail::Plan, room)));
    }
    rejected
}

/// The stage tree of a cached plan.
pub(crate) fn tree_of(plan: &Plan, room: &Room) -> DocumentBuf {
    whole(plan.query(), plan, Detail::Plan, room)
}

/// The stage tree of a plan with its statistics.
pub(crate) fn run_tree(plan: &Plan, statistics: &[StageStatistics], room: &Room) -> DocumentBuf {
    whole(plan.query(), plan, Detail::Run(statistics), room)
}

/// The runs of all plans in a trial.
pub(crate) fn all_trials(trials: &[Trial], room: &Room) -> ArrayBuf {
    let described = |trial: &Trial| {
        let mut described = DocumentBuf::new()
            .with("nReturned", trial.totals.returned as i32)
            .with("executionTimeMillisEstimate", 0_i32)
            .with("totalKeysExamined", trial.totals.keys_examined as i32)
            .with("totalDocsExamined", trial.totals.docs_examined as i32)
            .with("score", trial.score);
        let stages = whole(trial.plan.query(), &trial.plan, Detail::Run(&trial.stages), room);
        described.append("executionStages", &stages);
        described
    };
    let mut all = ArrayBuf::new();
    for trial in trials {
        all.push(&described(trial));
    }
    all
}

pub(super) fn executed(
    query: &FindQuery,
    plan: Option<&Plan>,
    run: Option<&[StageStatistics]>,
    room: &Room,
) -> DocumentBuf {
    let tree = match (plan, run) {
        (Some(plan), Some(run)) => whole(query, plan, Detail::Run(run), room),
        (Some(plan), None) => whole(query, plan, Detail::Plan, room),
        (None, _) => counters(missing_collection(), &StageStatistics { is_at_end: true, ..Default::default() }),
    };
    cached(false).with_tree(tree)
}

/// A read of the log, with counts once it has run.
pub(super) fn log_read(query: &FindQuery, read: LogRead, room: &Room) -> DocumentBuf {
    let mut facts = Facts::new(stage("COLLSCAN"), room);
    facts.append_filter("filter", &query.filter);
    let mut tree = facts.into_document();
    if let Some(run) = read.run {
        let rejected = run.examined - run.returned;
        let statistics =
            StageStatistics { advanced: run.returned, rejected, is_at_end: true, ..StageStatistics::default() };
        tree = counters(tree, &statistics);
    }
    let is_forward = read.direction == Direction::Forward;
    tree.append("direction", if is_forward { "forward" } else { "backward" });
    if let Some(from) = read.from {
        tree.append("minRecord", i64::from(from.seconds) << 32 | i64::from(from.increment));
    }
    if let Some(run) = read.run {
        super::append_count(&mut tree, "docsExamined", run.examined);
    }
    cached(false).with_tree(tree)
}

/// The `isCached` field, which comes first in each plan.
pub(super) fn cached(is_cached: bool) -> DocumentBuf {
    DocumentBuf::new().with("isCached", is_cached)
}

pub(super) trait WithTree {
    fn with_tree(self, tree: DocumentBuf) -> Self;
}

impl WithTree for DocumentBuf {
    fn with_tree(mut self, tree: DocumentBuf) -> Self {
        self.extend(tree.as_ref());
        self
    }
}

pub(super) fn stage(name: &str) -> DocumentBuf {
    DocumentBuf::new().with("stage", name)
}

pub(super) fn missing_collection() -> DocumentBuf {
    stage("EOF").with("type", "nonExistentNamespace")
}

pub(super) fn with_input(mut stage: DocumentBuf, input: &DocumentBuf) -> DocumentBuf {
    stage.append("inputStage", input);
    stage
}

/// The whole tree. An `$or` at the top is planned branch by branch, which MongoDB shows as a stage.
pub(super) fn whole(query: &FindQuery, plan: &Plan, detail: Detail<'_>, room: &Room) -> DocumentBuf {
    let root: &dyn Stage = plan.parts().root.as_ref();
    let tree = tree((query, estimated(plan)), root, detail, room);
    let is_or = matches!(query.filter.root(), Expression::Or(_)) && query.hint.is_none();
    if !is_or || !any_stage(query, root, &|name| matches!(name, "OR" | "SORT_MERGE" | "COLLSCAN")) {
        return tree;
    }
    let top = match detail {
        Detail::Plan => stage("SUBPLAN"),
        Detail::Run(run) => counters(stage("SUBPLAN"), &run[root.number().0]),
    };
    with_input(top, &tree)
}

fn any_stage(query: &FindQuery, root: &dyn Stage, is_sought: &impl Fn(&str) -> bool) -> bool {
    is_sought(root.name(query)) || root.inputs().into_iter().any(|input| any_stage(query, input, is_sought))
}

pub(super) fn estimated(plan: &Plan) -> Estimated<'_> {
    plan.estimate().map(|estimate| (estimate, plan.parts().root.number()))
}

pub(super) fn tree(
    (query, estimated): (&FindQuery, Estimated<'_>),
    root: &dyn Stage,
    detail: Detail<'_>,
    room: &Room,
) -> DocumentBuf {
    let mut described = described((query, estimated), root, detail, room);
    let mut inputs = Vec::new();
    for input in root.inputs() {
        if room.left() == 0 {
            let warning = "stats tree exceeded BSON size limit for explain";
            inputs.push(DocumentBuf::new().with("warning", warning));
            break;
        }
        // Keys of several scans are estimated together.
        let are_together = |name| matches!(name, "AND_SORTED" | "AND_HASH" | "OR" | "SORT_MERGE");
        let of_input = estimated.filter(|_| !are_together(root.name(query)));
        inputs.push(tree((query, of_input), input, detail, room));
    }
    match inputs.as_slice() {
        [] => {}
        [only] if !matches!(root.name(query), "OR" | "SORT_MERGE") => {
            described.append("inputStage", only);
        }
        several => {
            described.append("inputStages", &several.iter().collect::<ArrayBuf>());
        }
    }
    described
}

fn described(
    (query, estimated): (&FindQuery, Estimated<'_>),
    root: &dyn Stage,
    detail: Detail<'_>,
    room: &Room,
) -> DocumentBuf {
    let mut facts = Facts::new(stage(root.name(query)), room);
    match detail {
        Detail::Plan => {
            add_estimates(&mut facts, root.name(query), root.number(), estimated);
            root.describe(query, &mut facts);
        }
        Detail::Run(run) => {
            let statistics = &run[root.number().0];
            add_counters(&mut facts, statistics);
            add_estimates(&mut facts, root.name(query), root.number(), estimated);
            root.describe(query, &mut facts);
            root.describe_run(statistics, &mut facts);
        }
    }
    facts.into_document()
}

/// Adds estimates to a stage: of the whole plan at its top, of keys and documents where they are read.
/// Source: MongoDB 8.2, explain output with `planRankerMode`.
fn add_estimates(facts: &mut DocumentBuf, name: &str, number: StageNumber, estimated: Estimated<'_>) {
    let Some((estimate, top)) = estimated else { return };
    if number == top {
        facts
            .append("costEstimate", rounded(estimate.cost.likely))
            .append("cardinalityEstimate", rounded(estimate.results.likely))
            .append("estimatesMetadata", &DocumentBuf::new().with("ceSource", "Histogram"));
    }
    match name {
        "IXSCAN" | "AND_SORTED" | "AND_HASH" | "OR" | "SORT_MERGE" => {
            facts.append("numKeysEstimate", rounded(estimate.keys.likely))
        }
        "FETCH" | "CLUSTERED_IXSCAN" => facts.append("numDocsEstimate", rounded(estimate.documents.likely)),
        _ => return,
    };
}

/// Rounds an estimate to the digits that are significant.
fn rounded(estimate: f64) -> f64 {
    if estimate < 10.0 { (estimate * 10.0).round() / 10.0 } else { estimate.round() }
}

/// A stage with the counters that every stage has.
pub(super) fn counters(mut stage: DocumentBuf, statistics: &StageStatistics) -> DocumentBuf {
    add_counters(&mut stage, statistics);
    stage
}

fn add_counters(stage: &mut DocumentBuf, statistics: &StageStatistics) {
    let works = statistics.advanced + statistics.rejected + u64::from(statistics.is_at_end);
    stage
        .append("nReturned", statistics.advanced as i32)
        .append("executionTimeMillisEstimate", 0_i32)
        .append("works", works as i32)
        .append("advanced", statistics.advanced as i32)
        .append("needTime", statistics.rejected as i32)
        .append("needYield", 0_i32)
        .append("saveState", 0_i32)
        .append("restoreState", 0_i32)
        .append("isEOF", i32::from(statistics.is_at_end));
}
