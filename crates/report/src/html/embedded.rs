//! The data in a page, for its script and for readers without the JSON file.

use super::charts::with_curves;
use crate::conclusions::Concluded;
use crate::result::{Interval, Outcome, Report, ServerSample, Step};
use crate::step_label;
use crate::step_summary::{self, REQUESTS_MIN};
use bunko_statistics::LatencySummary;
use serde::Serialize;

/// A percentile curve.
#[derive(Serialize)]
struct Curve {
    label: String,
    /// The group of the curve, for pages with many curves.
    group: String,
    samples: u64,
    /// Quantiles and microseconds.
    points: Vec<(f64, f64)>,
}

/// The report and the curves, each with the id of its element.
pub(super) fn documents(report: &Report) -> Vec<(&'static str, String)> {
    let curves: Vec<_> = with_curves(report).flat_map(|step| curves_of(report, step)).collect();
    let json = |serialized: serde_json::Result<String>| serialized.expect("the model has string keys only");
    vec![
        ("report-json", json(serde_json::to_string(&Concluded::of(&slim(report))))),
        ("report-curves", json(serde_json::to_string(&curves))),
    ]
}

/// The curve of a step, followed by the curves of its mixed operations.
fn curves_of(report: &Report, step: &Step) -> Vec<Curve> {
    let label = step_label::full(report, step);
    let group = step_label::group(report, step);
    let parts = step_summary::parts(step).into_iter();
    let parts = parts.map(|part| (format!("{label}: {}", part.operation), part.histogram));
    let all = [(label.clone(), step_summary::pooled_histogram(step))].into_iter().chain(parts);
    all.filter_map(|(label, histogram)| {
        let histogram = histogram.filter(|histogram| histogram.len() >= REQUESTS_MIN)?;
        let points = histogram.curve().iter().map(|point| (point.quantile, six_digits(point.us))).collect();
        Some(Curve { label, group: group.clone(), samples: histogram.len(), points })
    })
    .collect()
}

/// Omits the histograms of seconds, which serve merging, and rounds figures of seconds to six digits. That is more than
/// their precision, and half the size.
fn slim(report: &Report) -> Report {
    let mut slim = report.clone();
    for run in slim.steps.iter_mut().flat_map(|step| &mut step.runs) {
        if let Outcome::Measured(measurement) = &mut run.outcome {
            measurement.intervals.iter_mut().for_each(round_interval);
            measurement.server.iter_mut().for_each(round_sample);
        }
    }
    slim
}

fn round_interval(interval: &mut Interval) {
    interval.histogram = None;
    interval.at_seconds = six_digits(interval.at_seconds);
    interval.seconds = six_digits(interval.seconds);
    let LatencySummary { samples: _, mean_us, p50_us, p90_us, p99_us, p999_us, p9999_us, max_us } =
        &mut interval.latency;
    [mean_us, p50_us, p90_us, p99_us, p999_us, p9999_us, max_us].into_iter().for_each(round);
}

fn round_sample(sample: &mut ServerSample) {
    sample.at_seconds = six_digits(sample.at_seconds);
    round(&mut sample.cpu_percent);
    round(&mut sample.major_faults_per_second);
    round(&mut sample.device_read_bytes_per_second);
    round(&mut sample.device_written_bytes_per_second);
    sample.status.values_mut().for_each(|value| *value = six_digits(*value));
}

fn round(value: &mut Option<f64>) {
    *value = value.map(six_digits);
}

fn six_digits(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let decimals = (5 - value.abs().log10().floor() as i32).max(0) as usize;
    format!("{value:.decimals$}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::six_digits;

    #[test]
    fn six_digits_are_kept() {
        let kept = [0.0, 1.0, 0.123_456_78, 12.345_678_9, 1_234_567.89, f64::INFINITY].map(six_digits);
        assert_eq!(kept, [0.0, 1.0, 0.123_457, 12.345_7, 1_234_568.0, f64::INFINITY]);
    }
}
