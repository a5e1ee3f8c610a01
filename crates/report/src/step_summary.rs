//! A step's repetitions as one row of figures.

use crate::result::{self, ActivityTime, Measurement, OperationPart, Report, Step};
use bunko_statistics::{Estimate, LatencyHistogram, LatencySummary, Ratio, Significance};

/// One row of the tables.
pub(crate) struct StepSummary<'a> {
    pub(crate) report: &'a Report,
    pub(crate) step: &'a Step,
    /// Median over the repetitions.
    pub(crate) documents_per_second: Option<Estimate>,
    /// Pooled over the requests of all repetitions, because percentiles must not be averaged.
    pub(crate) latency: Option<LatencySummary>,
    /// Delay of wake-ups on the machine, over all repetitions.
    pub(crate) pauses: Option<LatencySummary>,
    /// Throughput against the baseline's.
    pub(crate) relative: Option<Relative>,
}

/// The activity that took most of the time of a tool's threads.
pub(crate) struct Bottleneck<'a> {
    pub(crate) activity: &'a str,
    /// Share of the time of all threads.
    pub(crate) share: f64,
}

/// The baseline of relative throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Baseline {
    /// The same step of the first target.
    FirstTarget,
    /// The published figure.
    Reference,
    /// The phase's first step.
    FirstStep,
}

/// Throughput over the baseline's.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Relative {
    pub(crate) ratio: f64,
    /// 95 % interval; `None` with too few repetitions, or where the baseline has a single figure.
    pub(crate) interval: Option<(f64, f64)>,
    /// Whether the step is the baseline itself.
    pub(crate) is_baseline: bool,
}

impl Baseline {
    /// In words, for a column's heading.
    pub(crate) fn heading(self, report: &Report) -> String {
        match self {
            Self::FirstTarget => {
                format!("x {}", report.targets.first().map_or("first target", |target| &target.label))
            }
            Self::Reference => "x reference".to_owned(),
            Self::FirstStep => "x first step".to_owned(),
        }
    }

    /// In words, for a column's explanation.
    pub(crate) fn about(self) -> &'static str {
        match self {
            Self::FirstTarget => "throughput over that of the same step of the first target",
            Self::Reference => "throughput over the published figure",
            Self::FirstStep => "throughput over that of the phase's first step",
        }
    }
}

/// One summary per step, and the baseline, if there is one.
pub(crate) fn of_report(report: &Report) -> (Vec<StepSummary<'_>>, Option<Baseline>) {
    let baseline = choose_baseline(report);
    let summaries = report.steps.iter().map(|step| StepSummary {
        report,
        step,
        documents_per_second: Estimate::of(&rates(step)),
        latency: pooled_latency(step),
        pauses: pooled_pauses(step),
        relative: baseline.and_then(|baseline| relative(report, step, baseline)),
    });
    (summaries.collect(), baseline)
}

/// Minimum number of requests for a percentile, and so for a curve.
pub(crate) const REQUESTS_MIN: u64 = 20;

/// Whether a step's latencies have a curve: it has enough requests, and is not a dump or restore, which is a single
/// request.
pub(crate) fn has_curve(step: &Step) -> bool {
    let requests = step.measurements().filter(|run| run.transfer.is_none()).map(|run| run.latency.samples);
    requests.sum::<u64>() >= REQUESTS_MIN
}

/// Latencies of all repetitions in one histogram.
pub(crate) fn pooled_histogram(step: &Step) -> Option<LatencyHistogram> {
    pool(step.measurements().map(|measurement| measurement.histogram.as_str()))
}

/// The sum of encoded histograms; `None` if there is none, or one cannot be decoded.
fn pool<'a>(mut encoded: impl Iterator<Item = &'a str>) -> Option<LatencyHistogram> {
    let mut pooled = LatencyHistogram::decode(encoded.next()?).ok()?;
    for histogram in encoded {
        pooled.merge(&LatencyHistogram::decode(histogram).ok()?);
    }
    Some(pooled)
}

/// One operation of a mixed phase, over all repetitions.
pub(crate) struct PartSummary<'a> {
    pub(crate) operation: &'a str,
    /// Median over the repetitions.
    pub(crate) requests_per_second: Option<f64>,
    pub(crate) histogram: Option<LatencyHistogram>,
}

/// The operations of a mixed phase, in the order of its first repetition; empty for other phases.
pub(crate) fn parts(step: &Step) -> Vec<PartSummary<'_>> {
    let first = step.measurements().next().map(|measurement| measurement.parts.as_slice()).unwrap_or_default();
    let summary = |part: &'_ OperationPart| {
        let same = || {
            step.measurements().flat_map(|run| {
                let of_operation = run.parts.iter().filter(|other| other.operation == part.operation);
                of_operation.map(|other| (run.elapsed_seconds, other))
            })
        };
        let rates: Vec<_> = same().filter_map(|(seconds, part)| rate(part.requests as f64, seconds)).collect();
        let requests_per_second = Estimate::of(&rates).map(|estimate| estimate.median);
        (requests_per_second, pool(same().map(|(_, part)| part.histogram.as_str())))
    };
    first
        .iter()
        .map(|part| {
            let (requests_per_second, histogram) = summary(part);
            PartSummary { operation: &part.operation, requests_per_second, histogram }
        })
        .collect()
}

impl StepSummary<'_> {
    /// The median of `figure` over the repetitions that have it.
    pub(crate) fn median(&self, figure: impl Fn(&Measurement) -> Option<f64>) -> Option<f64> {
        let figures: Vec<_> = self.step.measurements().filter_map(figure).collect();
        Estimate::of(&figures).map(|estimate| estimate.median)
    }

    /// The step, unless it dumps or restores: a single request has no distribution.
    pub(crate) fn of_requests(&self) -> Option<&Step> {
        let is_transfer = self.step.measurements().any(|run| run.transfer.is_some());
        (!is_transfer).then_some(self.step)
    }

    /// The bottleneck of a dump or a restore, over all repetitions.
    pub(crate) fn bottleneck(&self) -> Option<Bottleneck<'_>> {
        let mut spent: Vec<(&str, f64)> = Vec::new();
        for ActivityTime { activity, seconds } in
            self.step.measurements().filter_map(|run| run.transfer.as_ref()).flat_map(|transfer| &transfer.spent)
        {
            match spent.iter_mut().find(|(known, _)| known == activity) {
                Some((_, sum)) => *sum += seconds,
                None => spent.push((activity, *seconds)),
            }
        }
        let total: f64 = spent.iter().map(|(_, seconds)| seconds).sum();
        let (activity, seconds) = spent.into_iter().max_by(|(_, one), (_, other)| one.total_cmp(other))?;
        Some(Bottleneck { activity, share: rate(seconds, total)? })
    }

    /// The 95 % interval of throughput, if there are enough repetitions.
    pub(crate) fn interval(&self) -> Option<(f64, f64)> {
        self.documents_per_second.as_ref().and_then(|estimate| estimate.interval)
    }

    /// The lowest and highest throughput of several repetitions that are too few for an interval; `None` for one
    /// repetition or enough of them.
    pub(crate) fn range(&self) -> Option<(f64, f64)> {
        let estimate = self.documents_per_second.as_ref()?;
        (estimate.interval.is_none() && estimate.samples > 1).then_some(estimate.range)
    }
}

/// `count` per `per`; `None` where `per` is not positive.
pub(crate) fn rate(count: f64, per: f64) -> Option<f64> {
    (per > 0.0).then(|| count / per)
}

fn rates(step: &Step) -> Vec<f64> {
    step.measurements().map(|measurement| measurement.documents_per_second).collect()
}

fn pooled_latency(step: &Step) -> Option<LatencySummary> {
    let mut measurements = step.measurements();
    let first = measurements.next()?;
    if measurements.next().is_none() {
        return Some(first.latency.clone());
    }
    pooled_histogram(step).map(|histogram| histogram.summary())
}

fn pooled_pauses(step: &Step) -> Option<LatencySummary> {
    let pauses = || step.measurements().filter_map(|measurement| measurement.pauses.as_ref());
    let wake_ups = pauses().map(|pauses| pauses.wake_ups).sum();
    let milliseconds = pool(pauses().map(|pauses| pauses.histogram.as_str()))?;
    Some(result::lateness(&milliseconds, wake_ups))
}

fn choose_baseline(report: &Report) -> Option<Baseline> {
    if report.targets.len() > 1 {
        Some(Baseline::FirstTarget)
    } else if report.steps.iter().any(|step| step.reference.is_some()) {
        Some(Baseline::Reference)
    } else {
        let is_later = |step: &Step| first_of_phase(report, step).is_some_and(|first| !std::ptr::eq(first, step));
        report.steps.iter().any(is_later).then_some(Baseline::FirstStep)
    }
}

fn relative(report: &Report, step: &Step, baseline: Baseline) -> Option<Relative> {
    let against = match baseline {
        Baseline::FirstTarget => report.steps.iter().find(|other| other.target == 0 && same_work(other, step))?,
        Baseline::FirstStep => first_of_phase(report, step)?,
        Baseline::Reference => {
            let reference = step.reference.as_ref()?.documents_per_second;
            let ours = Estimate::of(&rates(step))?.median;
            return rate(ours, reference).map(|ratio| Relative { ratio, interval: None, is_baseline: false });
        }
    };
    if std::ptr::eq(against, step) {
        return (!rates(step).is_empty()).then_some(Relative { ratio: 1.0, interval: None, is_baseline: true });
    }
    let (a, b) = (rates(against), rates(step));
    // Only targets are interleaved within a repetition; steps run at some distance from each other.
    let in_turns = baseline == Baseline::FirstTarget && repetitions(against) == repetitions(step);
    let ratio = if in_turns { Ratio::paired(&a, &b) } else { Ratio::of(&a, &b) };
    let Some(ratio) = ratio else {
        let (a, b) = (Estimate::of(&a)?.median, Estimate::of(&b)?.median);
        return rate(b, a).map(|ratio| Relative { ratio, interval: None, is_baseline: false });
    };
    let enough = ratio.significance != Significance::TooFewSamples;
    let interval = enough.then_some((ratio.low, ratio.high));
    Some(Relative { ratio: ratio.ratio, interval, is_baseline: false })
}

/// The numbers of the repetitions with figures.
fn repetitions(step: &Step) -> Vec<u32> {
    step.runs.iter().filter(|run| run.measurement().is_some()).map(|run| run.repetition).collect()
}

fn same_work(a: &Step, b: &Step) -> bool {
    let key = |step: &Step| (step.connections, step.in_flight);
    a.variant == b.variant && a.phase == b.phase && a.operation == b.operation && key(a) == key(b)
}

/// The first step of the step's phase that has figures: other steps of the phase are compared with it.
fn first_of_phase<'a>(report: &'a Report, step: &Step) -> Option<&'a Step> {
    report.steps.iter().find(|first| first.phase == step.phase && first.measurements().next().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn two_targets_are_compared_step_by_step() {
        let report = fixture::engines();
        let (summaries, baseline) = of_report(&report);
        assert_eq!(baseline, Some(Baseline::FirstTarget));
        let (first, second) = summaries.split_at(summaries.len() / 2);
        assert!(first.iter().all(|summary| summary.relative.as_ref().unwrap().is_baseline));
        for summary in second {
            let relative = summary.relative.as_ref().unwrap();
            let (low, high) = relative.interval.expect("five repetitions each");
            assert!(low < relative.ratio && relative.ratio < high, "{relative:?}");
        }
    }

    #[test]
    fn one_target_is_compared_with_what_is_published_or_with_its_first_step() {
        let mut report = fixture::engines();
        report.targets.truncate(1);
        report.steps.retain(|step| step.target == 0);
        let (summaries, baseline) = of_report(&report);
        assert_eq!(baseline, Some(Baseline::Reference));
        let summary = &summaries[0];
        let expected = summary.documents_per_second.as_ref().unwrap().median
            / summary.step.reference.as_ref().unwrap().documents_per_second;
        assert_eq!(summary.relative.as_ref().unwrap().ratio, expected);

        report.steps.iter_mut().for_each(|step| step.reference = None);
        let (summaries, baseline) = of_report(&report);
        assert_eq!(baseline, Some(Baseline::FirstStep));
        assert!(summaries[0].relative.as_ref().unwrap().is_baseline);
        assert!(summaries[1].relative.as_ref().unwrap().ratio > 1.0);
    }

    #[test]
    fn a_lone_step_has_no_baseline() {
        assert_eq!(of_report(&fixture::plain()).1, None);
    }

    #[test]
    fn operations_of_a_mixed_phase_are_summed_over_the_repetitions() {
        let report = fixture::mixed();
        let parts = parts(&report.steps[0]);
        assert_eq!(parts.iter().map(|part| part.operation).collect::<Vec<_>>(), ["find-one", "update-one"]);
        for part in &parts {
            assert_eq!(part.histogram.as_ref().unwrap().len(), 3 * 1_000);
            assert!((part.requests_per_second.unwrap() / 15_500.0 - 1.0).abs() < 0.05);
        }
    }

    #[test]
    fn percentiles_of_repetitions_are_those_of_all_requests() {
        let report = fixture::engines();
        let step = &report.steps[0];
        let samples: u64 = step.measurements().map(|measurement| measurement.latency.samples).sum();
        assert_eq!(pooled_latency(step).unwrap().samples, samples);
    }
}
