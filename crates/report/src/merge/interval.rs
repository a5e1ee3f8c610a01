//! The seconds of a run, added up over its workers.

use super::MergeRefusal;
use super::run_share::{RunShare, decode};
use crate::result::Interval;
use bunko_statistics::LatencyHistogram;
use std::collections::BTreeMap;

/// One second of all workers.
#[derive(Default)]
struct Second {
    seconds: f64,
    requests: u64,
    documents: u64,
    errors: u64,
    histogram: LatencyHistogram,
}

/// Adds the workers' intervals, aligned to the earliest starting signal.
///
/// A histogram cannot be divided, so a worker's interval counts as a whole in the second that its beginning is nearest
/// to: it is out of place by half a second at most, and no second takes two of one worker.
///
/// # Errors
/// A histogram that cannot be read, or is missing where requests were counted.
pub(super) fn add(run: &str, parts: &[RunShare<'_>]) -> Result<Vec<Interval>, MergeRefusal> {
    let mut seconds: BTreeMap<u64, Second> = BTreeMap::new();
    for part in parts {
        for interval in &part.measurement.intervals {
            let second = seconds.entry((part.late_seconds + interval.at_seconds).round() as u64).or_default();
            second.seconds = second.seconds.max(interval.seconds);
            second.requests += interval.requests;
            second.documents += interval.documents;
            second.errors += interval.errors;
            match &interval.histogram {
                Some(encoded) => second.histogram.merge(&decode(run, part.worker, encoded)?),
                None if interval.latency.samples == 0 => {}
                None => return Err(missing(run, part.worker, interval)),
            }
        }
    }
    let interval = |(at, second): (u64, Second)| Interval {
        at_seconds: at as f64,
        seconds: second.seconds,
        requests: second.requests,
        documents: second.documents,
        errors: second.errors,
        latency: second.histogram.summary(),
        histogram: Some(second.histogram.encode()),
    };
    Ok(seconds.into_iter().map(interval).collect())
}

fn missing(run: &str, worker: u32, interval: &Interval) -> MergeRefusal {
    let detail = format!("missing for second {:.0}: merge the JSON reports, HTML leaves it out", interval.at_seconds);
    MergeRefusal::Histogram { worker, run: run.to_owned(), detail }
}
