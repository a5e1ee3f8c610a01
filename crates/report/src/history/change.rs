//! Changes of levels, and their possible causes.
//!
//! Each metric's series has change points at a false alarm rate of 5 %, so forty unchanged series would show two. So
//! the rate is lowered by the procedure of Benjamini and Hochberg, separately for headline metrics and for the server's
//! cost, as in `compare::judgement`: among the series that seem to have changed, 5 % are expected to be false.

use super::provenance::{self, SAME_TIME_REPORTS};
use super::{Members, MetricHistory, StepHistory, Value};
use crate::compare::{Direction, FALSE_DISCOVERY_RATE, Role, benjamini_hochberg, exceeds_drift};
use bunko_statistics::{ChangePoint, Ratio};
use serde::Serialize;

/// A change of a metric's level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The first report on the new level: index into [`super::ScenarioHistory::reports`].
    pub report: usize,
    /// File of that report.
    pub file: String,
    /// When it was started.
    pub started_at_ms: u64,
    /// Median of the level before it.
    pub before: f64,
    /// Median of the new level.
    pub after: f64,
    /// `after` over `before`.
    pub ratio: f64,
    /// The probability that noise alone makes a change as clear as this one anywhere in the series.
    pub chance: f64,
    /// Whether the change is good or bad.
    pub effect: Effect,
    /// The machine's change at the same time.
    pub machine: MachineChange,
    /// Other differences of that report from the one before: the server's version, the promise of an acknowledgement,
    /// ...; one line each.
    pub besides: Vec<String>,
}

/// Whether a change is good or bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// An improvement.
    Better,
    /// A deterioration.
    Worse,
    /// A change of a control, which is neither.
    Differs,
}

/// The machine's change at the time of a metric's change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum MachineChange {
    /// The reports show no change of the machine.
    None,
    /// The generator ran on another processor or on another number of cores from that report on.
    Replaced,
    /// The generator's cost per request also changed, enough to explain the metric's change.
    Explains {
        /// After over before.
        generator_cost: f64,
    },
    /// The generator's cost also changed, but too little or in the other direction.
    ExplainsNot {
        /// After over before.
        generator_cost: f64,
    },
}

impl Change {
    /// Whether the machine's change may be the whole reason.
    pub fn is_of_machine(&self) -> bool {
        matches!(self.machine, MachineChange::Replaced | MachineChange::Explains { .. })
    }
}

/// Finds the changes of all metrics.
pub(super) fn judge(steps: &mut [StepHistory], control: &mut MetricHistory, members: &Members<'_>) {
    control.find_changes(FALSE_DISCOVERY_RATE, members);
    for role in [Role::Headline, Role::Detail] {
        let of_role = |metric: &&mut MetricHistory| metric.role == role;
        let family: Vec<_> = steps.iter_mut().flat_map(|step| &mut step.metrics).filter(of_role).collect();
        let limit = false_alarms_max(family.iter().map(|metric| &**metric));
        for metric in family {
            metric.find_changes(limit, members);
        }
    }
    for step in steps {
        for metric in &mut step.metrics {
            metric.look_at_machine(control, members);
            for change in &mut metric.changes {
                change.besides = provenance::differences(members, change.report, &step.target);
            }
        }
    }
}

/// The false alarm rate per series at which 5 % of the series that seem to have changed have not.
fn false_alarms_max<'a>(family: impl Iterator<Item = &'a MetricHistory>) -> f64 {
    let judged = family.filter(|metric| metric.values.len() >= super::VALUES_MIN);
    let chances: Vec<_> = judged.map(clearest_change).collect();
    let Some(limit) = benjamini_hochberg(chances.clone()) else { return 0.0 };
    let standing = chances.iter().filter(|&&chance| chance <= limit).count();
    FALSE_DISCOVERY_RATE * standing as f64 / chances.len() as f64
}

/// The chance of the series' clearest change; 1 if there is none.
fn clearest_change(metric: &MetricHistory) -> f64 {
    let found = ChangePoint::all(&medians(metric), FALSE_DISCOVERY_RATE);
    found.iter().map(|point| point.chance).fold(1.0, f64::min)
}

fn medians(metric: &MetricHistory) -> Vec<f64> {
    metric.values.iter().map(|value| value.median).collect()
}

impl MetricHistory {
    fn find_changes(&mut self, false_alarms_max: f64, members: &Members<'_>) {
        let found = ChangePoint::all(&medians(self), false_alarms_max);
        self.changes = found.iter().map(|point| self.change(point, members)).collect();
    }

    fn change(&self, point: &ChangePoint, members: &Members<'_>) -> Change {
        let report = self.values[point.place].report;
        let (file, first) = members[report];
        let effect = match (self.role, self.direction) {
            (Role::Control, _) => Effect::Differs,
            (_, Direction::HigherIsBetter) if point.after > point.before => Effect::Better,
            (_, Direction::LowerIsBetter) if point.after < point.before => Effect::Better,
            _ => Effect::Worse,
        };
        Change {
            report,
            file: file.display().to_string(),
            started_at_ms: first.started_at_ms,
            before: point.before,
            after: point.after,
            ratio: point.ratio(),
            chance: point.chance,
            effect,
            machine: MachineChange::None,
            besides: Vec::new(),
        }
    }

    /// Sets the machine's change for every change.
    fn look_at_machine(&mut self, control: &MetricHistory, members: &Members<'_>) {
        let machines: Vec<_> = (0..self.changes.len())
            .map(|index| {
                let change = &self.changes[index];
                if provenance::is_other_machine(members, change.report) {
                    return MachineChange::Replaced;
                }
                let same_time = |other: &&Change| other.report.abs_diff(change.report) <= SAME_TIME_REPORTS;
                let of_control = control.changes.iter().find(same_time);
                match of_control.filter(|other| !provenance::is_other_program(members, other.report)) {
                    Some(other) if self.exceeds(index, other.ratio) => {
                        MachineChange::ExplainsNot { generator_cost: other.ratio }
                    }
                    Some(other) => MachineChange::Explains { generator_cost: other.ratio },
                    None => MachineChange::None,
                }
            })
            .collect();
        self.changes.iter_mut().zip(machines).for_each(|(change, machine)| change.machine = machine);
    }

    /// Whether a change exceeds the one that this change of the generator's cost explains, by the rule of comparisons.
    fn exceeds(&self, change: usize, generator_cost: f64) -> bool {
        let (before, after) = self.levels(change);
        let ratio = Ratio::of(&before, &after);
        ratio.is_none_or(|ratio| exceeds_drift(self.direction, &ratio, Some(generator_cost)))
    }

    /// The medians of the reports on the level before a change, and of those on the level after it.
    fn levels(&self, change: usize) -> (Vec<f64>, Vec<f64>) {
        let place = self.changes[change].report;
        let begin = if change == 0 { 0 } else { self.changes[change - 1].report };
        let end = self.changes.get(change + 1).map_or(usize::MAX, |next| next.report);
        let within = self.values.iter().filter(|value| (begin..end).contains(&value.report));
        let (before, after): (Vec<&Value>, Vec<_>) = within.partition(|value| value.report < place);
        let medians = |values: Vec<&Value>| values.iter().map(|value| value.median).collect();
        (medians(before), medians(after))
    }
}
