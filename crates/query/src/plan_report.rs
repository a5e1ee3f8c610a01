//! The report of an executed plan, for the profiler and for slow lines in the log. Made only for operations that are
//! recorded there.

use crate::contest;
use crate::count::CountPlan;
use crate::execution::Execution;
use crate::explain::{self, Room};
use crate::plan::{Plan, PlanChoice};
use crate::run::StageStatistics;
use bunko_bson::text::ValueText;
use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, ValueRef, number};
use std::fmt::Write as _;

/// Maximum size in bytes of a stage tree in the profiler: large parts are left out.
const STAGES_BYTES_MAX: usize = 50 * 1024;

/// The report of an executed plan.
#[derive(Clone, Debug, Default)]
pub struct PlanReport {
    /// `planSummary`: the stages that read the collection, with their indexes.
    pub summary: String,
    /// `execStats`: the stage tree, as in explain.
    pub stages: DocumentBuf,
    /// `queryHash`, `planCacheShapeHash` and `planCacheKey`; empty without planning.
    pub hashes: DocumentBuf,
    /// Whether a stage sorts.
    pub sorts: bool,
    /// Whether a stage used the disk.
    pub used_disk: bool,
    /// The reason for the choice of the plan.
    pub choice: PlanChoice,
}

/// A finished run, without its snapshot.
pub struct FinishedRun {
    plan: Plan,
    statistics: Vec<StageStatistics>,
    choice: PlanChoice,
}

impl FinishedRun {
    /// The report of the run.
    pub fn report(&self) -> PlanReport {
        PlanReport::of(&self.plan, Some(&self.statistics), self.choice)
    }
}

impl PlanReport {
    /// The report of a plan with the statistics of its stages, if known.
    pub(crate) fn of(plan: &Plan, statistics: Option<&[StageStatistics]>, choice: PlanChoice) -> Self {
        let room = Room::new(STAGES_BYTES_MAX);
        let stages = match statistics {
            Some(statistics) => explain::run_tree(plan, statistics, &room),
            None => explain::tree_of(plan, &room),
        };
        Self { hashes: hashes(plan), choice, ..Self::of_tree(stages) }
    }

    /// The report of a plan that has not ended, without statistics.
    pub fn planned(plan: &Plan, choice: PlanChoice) -> Self {
        Self::of(plan, None, choice)
    }

    /// The report for a stage tree, as in explain.
    pub fn of_tree(stages: DocumentBuf) -> Self {
        let mut summary = String::new();
        let mut report = Self::default();
        report.visit(stages.as_ref(), &mut summary);
        Self { summary, stages, ..report }
    }

    /// The report of an `_id` lookup without a plan.
    pub fn of_id_lookup(is_clustered: bool, is_found: bool) -> Self {
        let name = if is_clustered { "EXPRESS_CLUSTERED_IXSCAN" } else { "EXPRESS_IXSCAN" };
        let mut stage = DocumentBuf::new().with("stage", name);
        if !is_clustered {
            stage.append("keyPattern", "{ _id: 1 }").append("indexName", "_id_");
        }
        let found = i32::from(is_found);
        Self::of_tree(stage.with("keysExamined", found).with("docsExamined", found))
    }

    fn visit(&mut self, stage: DocumentRef<'_>, summary: &mut String) {
        let name = stage.get("stage").and_then(ValueRef::as_str).unwrap_or_default();
        self.sorts |= name == "SORT";
        self.used_disk |= matches!(stage.get("usedDisk"), Some(ValueRef::Boolean(true)));
        let inputs = stage.get("inputStages").and_then(ValueRef::as_array);
        let inputs = inputs.into_iter().flat_map(ArrayRef::iter).chain(stage.get("inputStage"));
        let mut is_leaf = true;
        for input in inputs.filter_map(ValueRef::as_document) {
            is_leaf = false;
            self.visit(input, summary);
        }
        if is_leaf {
            if !summary.is_empty() {
                summary.push_str(", ");
            }
            summary.push_str(name);
            append_pattern(summary, stage.get("keyPattern"));
        }
    }
}

impl Execution {
    /// The plan's report up to now, for the profiler.
    pub fn report(&self) -> PlanReport {
        PlanReport::of(self.plan(), Some(self.all_statistics()), self.choice())
    }

    /// Takes the statistics, for a report that may be wanted later. The caller requests no more documents afterwards.
    pub fn finish(&mut self) -> FinishedRun {
        let statistics = self.take_statistics();
        FinishedRun { plan: self.plan().clone(), statistics, choice: self.choice() }
    }
}

impl CountPlan {
    /// The report of a count, for the profiler.
    pub fn report(&self, execution: Option<&Execution>, count: u64) -> PlanReport {
        let report = PlanReport::of_tree(explain::counted(self, execution, count, &Room::new(STAGES_BYTES_MAX)));
        match execution {
            Some(execution) => PlanReport { hashes: hashes(execution.plan()), choice: execution.choice(), ..report },
            None => report,
        }
    }
}

fn hashes(plan: &Plan) -> DocumentBuf {
    let mut hashes = DocumentBuf::new();
    contest::append_hashes(&mut hashes, plan);
    hashes
}

/// Appends ` { a: 1 }`; whole numbers are shown without a fraction, whatever their type.
fn append_pattern(summary: &mut String, pattern: Option<ValueRef<'_>>) {
    match pattern {
        Some(ValueRef::String(pattern)) => summary.extend([" ", pattern]),
        Some(ValueRef::Document(pattern)) => {
            for (position, field) in pattern.iter().enumerate() {
                summary.push_str(if position == 0 { " { " } else { ", " });
                // Writing to a string cannot fail.
                let _ = match number::as_i64_exact(field.value) {
                    Some(whole) => write!(summary, "{}: {whole}", field.name),
                    None => write!(summary, "{}: {}", field.name, ValueText(field.value)),
                };
            }
            summary.push_str(" }");
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_testkit::shell;

    fn report(tree: &str) -> PlanReport {
        PlanReport::of_tree(shell::parse_document(tree).expect("a tree"))
    }

    #[test]
    fn the_summary_names_the_leaves() {
        let sorted = report("{stage: 'SORT', inputStage: {stage: 'COLLSCAN', direction: 'forward'}}");
        assert_eq!((sorted.summary.as_str(), sorted.sorts, sorted.used_disk), ("COLLSCAN", true, false));
        let branches = report(
            "{stage: 'FETCH', inputStage: {stage: 'OR', inputStages: [{stage: 'IXSCAN', keyPattern: {a: 1.0, b: -1}}, \
             {stage: 'IXSCAN', keyPattern: {c: 'hashed'}}]}}",
        );
        assert_eq!(branches.summary, "IXSCAN { a: 1, b: -1 }, IXSCAN { c: \"hashed\" }");
        let spilled = report("{stage: 'SORT', usedDisk: true, inputStage: {stage: 'EOF'}}");
        assert!(spilled.used_disk);
        assert_eq!(report("{stage: 'EXPRESS_IXSCAN', keyPattern: '{ _id: 1 }'}").summary, "EXPRESS_IXSCAN { _id: 1 }");
    }
}
