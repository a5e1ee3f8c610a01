//! The tree of stages of a count in explain.

use super::index::describe_count;
use super::stages::{
    Detail, WithTree as _, cached, counters, estimated, missing_collection, stage, tree, whole, with_input,
};
use super::{Room, append_count};
use crate::count::CountPlan;
use crate::execution::Execution;
use crate::find_query::FindQuery;
use crate::plan::Plan;
use crate::run::StageStatistics;
use crate::stages::{IndexScan, Stage as _};
use bunko_bson::DocumentBuf;

pub(super) fn winning_count(query: &FindQuery, plan: Option<&CountPlan>, room: &Room) -> DocumentBuf {
    let tree = match plan {
        None => with_input(stage("COUNT"), &missing_collection()),
        Some(count) => match count.plan() {
            None => stage("RECORD_STORE_FAST_COUNT"),
            Some(plan) => with_input(stage("COUNT"), &counted_tree(query, plan, Detail::Plan, room)),
        },
    };
    cached(false).with_tree(tree)
}

pub(super) fn executed_count(
    query: &FindQuery,
    plan: Option<&CountPlan>,
    counted: (Option<&Execution>, u64),
    room: &Room,
) -> DocumentBuf {
    cached(false).with_tree(counted_stages(query, plan, counted, room))
}

/// The stage tree of a count with its statistics.
pub(crate) fn counted(plan: &CountPlan, execution: Option<&Execution>, count: u64, room: &Room) -> DocumentBuf {
    match execution {
        Some(execution) => counted_stages(execution.plan().query(), Some(plan), (Some(execution), count), room),
        // Without an execution no stage reads the collection, so the query is not needed.
        None => count_stage(Some(plan), count),
    }
}

fn counted_stages(
    query: &FindQuery,
    plan: Option<&CountPlan>,
    (execution, count): (Option<&Execution>, u64),
    room: &Room,
) -> DocumentBuf {
    let at_end = StageStatistics { is_at_end: true, ..StageStatistics::default() };
    let tree = count_stage(plan, count);
    match execution {
        Some(execution) => {
            let detail = Detail::Run(execution.all_statistics());
            with_input(tree, &counted_tree(query, execution.plan(), detail, room))
        }
        None if plan.is_none() => with_input(tree, &counters(missing_collection(), &at_end)),
        None => tree,
    }
}

/// The stage that counts.
fn count_stage(plan: Option<&CountPlan>, count: u64) -> DocumentBuf {
    let at_end = StageStatistics { is_at_end: true, ..StageStatistics::default() };
    let name = if plan.is_some_and(|count| count.plan().is_none()) { "RECORD_STORE_FAST_COUNT" } else { "COUNT" };
    let mut tree = counters(stage(name), &at_end);
    append_count(&mut tree, "nCounted", count);
    append_count(&mut tree, "nSkipped", plan.map_or(0, CountPlan::skip));
    tree
}

/// The stages that a count runs: keys alone if they decide the filter.
fn counted_tree(query: &FindQuery, plan: &Plan, detail: Detail<'_>, room: &Room) -> DocumentBuf {
    let root = plan.parts().root.as_ref();
    let Some(keys) = root.decided_by_keys() else { return whole(query, plan, detail, room) };
    match keys.as_index_scan() {
        Some(scan) if scan.is_one_range() => count_scan(scan, detail),
        _ => tree((query, estimated(plan)), keys, detail, room),
    }
}

fn count_scan(scan: &IndexScan, detail: Detail<'_>) -> DocumentBuf {
    let mut described = stage("COUNT_SCAN");
    if let Detail::Run(run) = detail {
        let statistics = &run[scan.number().0];
        described = counters(described, statistics);
        described.append("keysExamined", statistics.keys_examined as i32);
    }
    describe_count(scan.bounds(), &mut described);
    described
}
