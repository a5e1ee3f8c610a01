//! Sums the workers' figures.

use super::run_share::{RunShare, decode};
use super::{MergeRefusal, finding, interval, pauses, provenance};
use crate::p999_trend;
use crate::result::{Finding, Measurement, OperationPart, ServerSample};
use bunko_statistics::LatencyHistogram;

/// The sum of all workers; errors name it `run`.
///
/// # Errors
/// An undecodable histogram.
pub(super) fn sum(run: &str, parts: &[RunShare<'_>]) -> Result<Measurement, MergeRefusal> {
    let of = || parts.iter().map(|part| part.measurement);
    let histogram = histogram(run, parts)?;
    let (latency, pauses) = (histogram.summary(), pauses::sum(run, parts)?);
    let requests: u64 = of().map(|share| share.requests).sum();
    let documents: u64 = of().map(|share| share.documents).sum();
    // From the earliest start to the latest reply.
    let ends = parts.iter().map(|part| part.late_seconds + part.measurement.elapsed_seconds);
    let elapsed_seconds = ends.fold(0.0, f64::max);
    let per_second = |count: u64| count as f64 / elapsed_seconds.max(f64::MIN_POSITIVE);
    let offered_rate: Option<f64> = of().map(|share| share.offered_rate).sum();
    let observer = observer(parts);
    let intervals = interval::add(run, parts)?;
    let mut findings = finding::unite(parts);
    findings.extend(offered_rate.and_then(|offered| Finding::of_rate(offered, per_second(requests))));
    findings.extend(pauses.as_ref().and_then(|pauses| Finding::of_pauses(&pauses.lateness, &latency)));
    Ok(Measurement {
        requests,
        documents,
        document_bytes: of().map(|share| share.document_bytes).sum(),
        errors: of().map(|share| share.errors).sum(),
        begun_anew: of().map(|share| share.begun_anew).sum(),
        elapsed_seconds,
        documents_per_second: per_second(documents),
        offered_rate,
        achieved_rate: per_second(requests),
        latency,
        histogram: histogram.encode(),
        pauses,
        parts: operation_parts(run, parts)?,
        p999_trend: p999_trend(&intervals),
        intervals,
        server: server_samples(&observer),
        server_cpu_seconds: observed(parts, &observer, |share| share.server_cpu_seconds),
        server_resident_bytes: observed(parts, &observer, |share| share.server_resident_bytes),
        settling: observed(parts, &observer, |share| share.settling),
        journal_syncs: observed(parts, &observer, |share| share.journal_syncs),
        generator_cpu_seconds: of().map(|share| share.generator_cpu_seconds).sum(),
        generator_threads: of().map(|share| share.generator_threads).sum(),
        // Dumps and restores run on a single generator.
        transfer: None,
        set: observed(parts, &observer, |share| share.set.clone()),
        cache: provenance::distinct(of().map(|share| share.cache.as_str())),
        verified_documents: of().map(|share| share.verified_documents).sum(),
        findings,
    })
}

fn histogram(run: &str, parts: &[RunShare<'_>]) -> Result<LatencyHistogram, MergeRefusal> {
    let mut merged = LatencyHistogram::default();
    for part in parts {
        merged.merge(&decode(run, part.worker, &part.measurement.histogram)?);
    }
    Ok(merged)
}

/// The operations of a mixed phase, each summed over the workers.
fn operation_parts(run: &str, parts: &[RunShare<'_>]) -> Result<Vec<OperationPart>, MergeRefusal> {
    let mut sums: Vec<(&str, u64, LatencyHistogram)> = Vec::new();
    for part in parts {
        for share in &part.measurement.parts {
            let histogram = decode(run, part.worker, &share.histogram)?;
            match sums.iter_mut().find(|(operation, ..)| *operation == share.operation) {
                Some((_, requests, sum)) => {
                    *requests += share.requests;
                    sum.merge(&histogram);
                }
                None => sums.push((&share.operation, share.requests, histogram)),
            }
        }
    }
    let part = |(operation, requests, histogram): (&str, u64, LatencyHistogram)| OperationPart {
        operation: operation.to_owned(),
        requests,
        latency: histogram.summary(),
        histogram: histogram.encode(),
    };
    Ok(sums.into_iter().map(part).collect())
}

/// The worker with most samples of the server. Samples of several workers are never added, because all measured the
/// same server.
fn observer<'a>(parts: &[RunShare<'a>]) -> RunShare<'a> {
    let samples = |part: &RunShare<'_>| part.measurement.server.len();
    // The first of several workers with equally many samples.
    parts
        .iter()
        .copied()
        .reduce(|best, part| if samples(&part) > samples(&best) { part } else { best })
        .expect("a run has a worker")
}

fn server_samples(observer: &RunShare<'_>) -> Vec<ServerSample> {
    let from_earliest = |sample: &ServerSample| {
        let at_seconds = sample.at_seconds + observer.late_seconds;
        ServerSample { at_seconds, ..sample.clone() }
    };
    observer.measurement.server.iter().map(from_earliest).collect()
}

/// A figure of the server: from the observer, or from the first worker that has it.
fn observed<T>(
    parts: &[RunShare<'_>],
    observer: &RunShare<'_>,
    figure: impl Fn(&Measurement) -> Option<T>,
) -> Option<T> {
    figure(observer.measurement).or_else(|| parts.iter().find_map(|part| figure(part.measurement)))
}
