//! Where levels changed, and what may have done it.
//!
//! Each metric's series has its change points at a false alarm rate of 5 %; forty series that did not change would show
//! two. So the rate is lowered to what the procedure of Benjamini and Hochberg leaves of it for headline metrics and
//! for the server's cost, each among themselves, as in `compare::judgement`: of the series that seem to have
//! changed, 5 % are expected not to have.

use super::{Members, MetricHistory, StepHistory, Value, provenance};
use crate::compare::{Direction, FALSE_DISCOVERY_RATE, Role, benjamini_hochberg, exceeds_drift};
use bunko_statistics::{ChangePoint, Ratio};
use serde::Serialize;

/// A change of a metric's level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The first report on the new level: index into [`super::ScenarioHistory::reports`].
    pub report: usize,
    /// Its file.
    pub file: String,
    /// When it was started.
    pub started_at_ms: u64,
    /// Median of the level before it.
    pub before: f64,
    /// Median of the level from it on.
    pub after: f64,
    /// `after` over `before`.
    pub ratio: f64,
    /// The probability that noise alone makes a change as clear as this one anywhere in the series.
    pub chance: f64,
    /// Which way it went.
    pub effect: Effect,
    /// What the machine did at the same time.
    pub machine: MachineChange,
    /// What else that report says otherwise than the one before: the server's version, what an acknowledgement
    /// promised, ...; one line each.
    pub besides: Vec<String>,
}

/// Which way a change went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// For the better.
    Better,
    /// For the worse.
    Worse,
    /// Of a control, which is neither.
    Differs,
}

/// What the machine did when a metric changed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum MachineChange {
    /// Nothing that can be seen.
    None,
    /// From that report on the generator ran on another processor, or on more or fewer cores.
    Replaced,
    /// The generator's cost per request changed, too, enough to explain the metric's change.
    Explains {
        /// After over before.
        generator_cost: f64,
    },
    /// The generator's cost changed, too, but by too little or the other way.
    ExplainsNot {
        /// After over before.
        generator_cost: f64,
    },
}

/// Change points of a metric and of the control that are so many reports apart are one event: neither place is exact.
pub(super) const SAME_TIME_REPORTS: usize = 1;

impl Change {
    /// Whether the machine's own change may be the whole reason.
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

/// The false alarm rate of one series, such that 5 % of the series that seem to have changed have not.
fn false_alarms_max<'a>(family: impl Iterator<Item = &'a MetricHistory>) -> f64 {
    let judged = family.filter(|metric| metric.values.len() >= super::VALUES_MIN);
    let chances: Vec<_> = judged.map(clearest_change).collect();
    let Some(limit) = benjamini_hochberg(chances.clone()) else { return 0.0 };
    let standing = chances.iter().filter(|&&chance| chance <= limit).count();
    FALSE_DISCOVERY_RATE * standing as f64 / chances.len() as f64
}

/// The chance of the series' clearest change; certain where there is none.
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

    /// Says of every change what the machine did.
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

    /// Whether a change goes beyond what a generator's cost of so much more explains, by the rule of comparisons.
    fn exceeds(&self, change: usize, generator_cost: f64) -> bool {
        let (before, after) = self.levels(change);
        let ratio = Ratio::of(&before, &after);
        ratio.is_none_or(|ratio| exceeds_drift(self.direction, &ratio, Some(generator_cost)))
    }

    /// The values between a change and those before and after it.
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
