//! Searches for the highest rate at which a server meets a latency objective.

use crate::BenchError;
use crate::observer::Observer;
use crate::run::{RunOptions, run};
use crate::scenario::{Override, ScenarioSource};
use crate::target::Target;
use bunko_report::Report;
use bunko_report::result::{Finding, Measurement, Step};
use bunko_statistics::{RateSearch, RateSearchOptions, Trial};
use serde::Serialize;
use std::sync::atomic::Ordering;
use std::time::Duration;
use toml::Value;

/// Parameters of the search.
#[derive(Clone, Debug)]
pub struct FindMaxOptions {
    /// The percentile that the objective limits, 0..1.
    pub quantile: f64,
    /// The most latency at that percentile.
    pub objective: Duration,
    /// The phase whose rate is varied; if `None`, the scenario's last.
    pub phase: Option<String>,
    /// The first rate that is tried, in requests per second.
    pub start: f64,
    /// The search ends when the lowest failed rate is less than this share above the highest good one.
    pub resolution: f64,
    /// Maximum number of rates that are tried.
    pub trials_max: u32,
}

/// Result of one tried rate.
#[derive(Clone, Debug, Serialize)]
pub struct RateTrial {
    /// Offered requests per second.
    pub offered: f64,
    /// Achieved requests per second.
    pub achieved: f64,
    /// The percentile in microseconds; `None` with too few samples.
    pub latency_us: Option<f64>,
    /// Whether the objective was met, at the full rate and without errors.
    pub met: bool,
    /// The reason if it was not.
    pub reason: Option<String>,
    /// The badges of its run.
    pub badges: Vec<String>,
}

/// Result of the search.
#[derive(Debug)]
pub struct FoundRate {
    /// The row that was searched: the phase with its concurrency, and the variant if the scenario has several.
    pub step: String,
    /// The highest rate that met the objective in most of its trials; `None` if no rate did.
    pub rate: Option<f64>,
    /// Whether more than one trial supports the rate. The number of trials may not suffice for that.
    pub confirmed: bool,
    /// All trials in their order.
    pub trials: Vec<RateTrial>,
    /// The report of the rate's last good trial, or of the first trial if no rate met the objective.
    pub report: Option<Report>,
}

/// Runs the scenario at one rate after the other, up to the phase whose rate is varied. A trial is one row: it runs the
/// last value of each swept setting and of each list of connections.
/// # Errors
/// As [`run`]; a phase that does not exist, a setting that contradicts the search.
pub fn find_max(
    source: &ScenarioSource,
    search: &FindMaxOptions,
    target: &mut Target,
    options: &RunOptions,
    observer: &mut dyn Observer,
) -> Result<FoundRate, BenchError> {
    let scenario = source.scenario()?;
    let phase = match &search.phase {
        Some(phase) => phase.clone(),
        None => scenario.phase.last().map(|phase| phase.name.clone()).unwrap_or_default(),
    };
    let source = searched(source, &phase, observer)?;
    let mut step = phase.clone();
    let mut rates = RateSearch::new(RateSearchOptions {
        start: search.start,
        resolution: search.resolution,
        trials_max: search.trials_max,
    });
    let mut trials = Vec::new();
    let mut reports = Vec::new();
    while let Some(rate) = rates.next() {
        let mut source = source.clone();
        source.set(&Override::new(&format!("phase.{phase}.load.rate"), Value::Float(rate)))?;
        source.set(&Override::new("repetitions", Value::Integer(1)))?;
        observer.note(&format!("trying {rate:.0} requests/s"));
        let report = run(&source, std::slice::from_mut(target), options, observer)?;
        if options.stop.load(Ordering::Relaxed) {
            break;
        }
        let measured = report.steps.iter().rfind(|step| step.phase == phase);
        let Some(measurement) = measured.and_then(|step| step.measurements().last()) else {
            return Err(BenchError::Option { name: "phase", detail: format!("'{phase}' gave no figures") });
        };
        step = measured.map_or(step, Step::label);
        let trial = judge(measurement, rate, search);
        rates.record(rate, if trial.met { Trial::Met } else { Trial::Missed });
        // The best rate so far may fail in a later trial and be replaced by a lower one.
        if trial.met || reports.is_empty() {
            reports.push((trial.met.then_some(rate), report));
        }
        trials.push(trial);
    }
    let best = rates.best();
    let report = reports.iter().rposition(|(met, _)| met.is_some() && *met == best).unwrap_or_default();
    let report = (!reports.is_empty()).then(|| reports.swap_remove(report).1);
    Ok(FoundRate { step, rate: best, confirmed: rates.is_confirmed(), trials, report })
}

/// Leaves out the parts of the scenario whose results a trial would not use, and tells `observer` which values are
/// kept.
fn searched(source: &ScenarioSource, phase: &str, observer: &mut dyn Observer) -> Result<ScenarioSource, BenchError> {
    let mut source = source.clone();
    source.without_allocation("find-max")?;
    let is = |key: &str, change: &&Override| change.key == key;
    let rate = format!("phase.{phase}.load.rate");
    if let Some(change) = source.changes().iter().find(|change| is(&rate, change)) {
        return Err(source.failed(format!("--set {change}: find-max varies it, from --start on")).into());
    }
    let once = Value::Integer(1);
    if let Some(change) = source.changes().iter().find(|change| is("repetitions", change) && change.value != once) {
        return Err(source.failed(format!("--set {change}: find-max runs each rate once")).into());
    }
    source.end_behind(phase)?;
    for choice in source.keep_last_values() {
        observer.note(&format!("searching with {choice}; --set chooses another"));
    }
    Ok(source)
}

fn judge(measurement: &Measurement, offered: f64, search: &FindMaxOptions) -> RateTrial {
    let latency_us = bunko_statistics::LatencyHistogram::decode(&measurement.histogram)
        .ok()
        .and_then(|histogram| histogram.quantile_us(search.quantile));
    let objective_us = search.objective.as_secs_f64() * 1e6;
    let invalid = measurement.findings.iter().find(|finding| {
        matches!(
            finding,
            Finding::Errors { .. }
                | Finding::RateNotKept { .. }
                | Finding::CountsDiffer { .. }
                | Finding::ContentsDiffer { .. }
        )
    });
    let reason = match (invalid, latency_us) {
        (Some(finding), _) => Some(finding.to_string()),
        (None, None) => Some("too few samples for the percentile".to_owned()),
        (None, Some(latency)) if latency > objective_us => Some(format!("{latency:.0} us")),
        (None, Some(_)) => None,
    };
    let badges = measurement.findings.iter().map(|finding| finding.badge().text).collect();
    RateTrial { offered, achieved: measurement.achieved_rate, latency_us, met: reason.is_none(), reason, badges }
}
