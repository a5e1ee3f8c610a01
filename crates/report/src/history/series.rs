//! The figures of every step, report by report.

use super::{Members, MetricHistory, StepHistory, Value};
use crate::compare::{Direction, METRICS, Metric, Role, SERVER_COST, sample};
use crate::result::{Report, Run, Severity, Step};
use crate::step_label;
use bunko_statistics::Estimate;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The name of the control.
pub(super) const CONTROL: &str = "generator's cost";

/// Every step with valid figures in any report, in the order of the newest report; and the control.
pub(super) fn collect(members: &Members<'_>) -> (Vec<StepHistory>, MetricHistory) {
    let mut steps: Vec<StepHistory> = Vec::new();
    for (_, report) in members.iter().rev() {
        for step in &report.steps {
            if !steps.iter().any(|known| known.is(report, step)) {
                steps.push(StepHistory::named_after(report, step));
            }
        }
    }
    for step in &mut steps {
        step.metrics =
            METRICS.iter().filter(|metric| is_followed(metric)).map(|metric| of(metric, step, members)).collect();
    }
    let control = control(&steps);
    for step in &mut steps {
        step.metrics.retain(|metric| metric.role != Role::Control && !metric.values.is_empty());
    }
    steps.retain(|step| !step.metrics.is_empty());
    (steps, control)
}

/// The generator's cost relative to the first report; see [`super::ScenarioHistory::control`].
fn control(steps: &[StepHistory]) -> MetricHistory {
    let of_steps = steps.iter().flat_map(|step| &step.metrics).filter(|metric| metric.role == Role::Control);
    // A series with fewer values has its median over other reports, so it is left out.
    let most = of_steps.clone().map(|metric| metric.values.len()).max().unwrap_or_default();
    let mut relative: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for metric in of_steps.filter(|metric| metric.values.len() == most) {
        let middle = median(metric.values.iter().map(|value| value.median));
        for value in &metric.values {
            relative.entry(value.report).or_default().extend(middle.map(|middle| value.median / middle));
        }
    }
    let value = |(report, costs): (usize, Vec<f64>)| Some(Value { report, median: median(costs.into_iter())? });
    let mut values: Vec<_> = relative.into_iter().filter_map(value).collect();
    let first = values.first().map(|value| value.median);
    values.iter_mut().zip(first.into_iter().cycle()).for_each(|(value, first)| value.median /= first);
    MetricHistory {
        metric: CONTROL,
        role: Role::Control,
        direction: Direction::LowerIsBetter,
        values,
        changes: Vec::new(),
    }
}

fn median(samples: impl Iterator<Item = f64>) -> Option<f64> {
    Estimate::of(&samples.collect::<Vec<_>>()).map(|estimate| estimate.median)
}

/// Number of runs with invalid figures.
pub(super) fn invalid_runs(members: &Members<'_>) -> usize {
    let runs = members.iter().flat_map(|(_, report)| &report.steps).flat_map(|step| &step.runs);
    runs.filter(|run| !is_valid(run)).count()
}

fn is_valid(run: &Run) -> bool {
    let findings = run.measurement().into_iter().flat_map(|measurement| &measurement.findings);
    findings.map(crate::result::Finding::severity).all(|severity| severity != Severity::Invalid)
}

/// Details are left to comparisons, except the server's cost: it shows changes that an idle server hides.
fn is_followed(metric: &Metric) -> bool {
    metric.role != Role::Detail || metric.name == SERVER_COST
}

fn of(metric: &Metric, step: &StepHistory, members: &Members<'_>) -> MetricHistory {
    let value = |(index, (_, report)): (usize, &&(PathBuf, Report))| {
        let runs = report.steps.iter().filter(|other| step.is(report, other)).flat_map(|step| &step.runs);
        let samples: Vec<_> = runs.filter(|run| is_valid(run)).filter_map(|run| sample(metric, run)).collect();
        Estimate::of(&samples).map(|estimate| Value { report: index, median: estimate.median })
    };
    MetricHistory {
        metric: metric.name,
        role: metric.role,
        direction: metric.direction,
        values: members.iter().enumerate().filter_map(value).collect(),
        changes: Vec::new(),
    }
}

impl StepHistory {
    fn named_after(report: &Report, step: &Step) -> Self {
        Self {
            step: step_label::full(report, step),
            target: step_label::target_label(report, step.target).to_owned(),
            variant: step.variant.clone(),
            phase: step.phase.clone(),
            operation: step.operation.clone(),
            connections: step.connections,
            in_flight: step.in_flight,
            metrics: Vec::new(),
        }
    }

    fn is(&self, report: &Report, step: &Step) -> bool {
        self.target == step_label::target_label(report, step.target)
            && (&self.variant, &self.phase, &self.operation, self.connections, self.in_flight)
                == (&step.variant, &step.phase, &step.operation, step.connections, step.in_flight)
    }
}
