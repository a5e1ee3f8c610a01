//! Checks a phase's figures against the scenario's limits.

use crate::scenario::Limits;
use bunko_report::result::{Finding, Measurement};

/// Sizes that limits are compared with, in addition to the measurement.
pub(super) struct Sizes {
    /// Present size of the data directory, in bytes; `None` if it is on another machine.
    pub on_disk: Option<u64>,
    /// Size of the documents in bytes, divided by their compression ratio; `None` if the scenario gives no ratio.
    pub live: Option<f64>,
}

/// A finding for every limit that is exceeded or cannot be checked.
pub(super) fn check(limits: &Limits, measurement: &Measurement, sizes: &Sizes) -> Vec<Finding> {
    let p999 = limits.p999_rise.and_then(|share| p999_rise(share, measurement));
    let disk = limits.disk_over_live.and_then(|most| disk_over_live(most, sizes));
    let resident = limits.resident.and_then(|most| resident(most.0, measurement));
    [p999, disk, resident].into_iter().flatten().collect()
}

fn p999_rise(share: f64, measurement: &Measurement) -> Option<Finding> {
    let Some(trend) = measurement.p999_trend else {
        let detail = "p999-rise: the run has not ten parts of whole seconds with 10,000 requests each".to_owned();
        return Some(Finding::LimitUnchecked { detail });
    };
    trend.rises_by_more_than(share).then(|| Finding::LimitExceeded {
        detail: format!(
            "p99.9 rose from {:.0} to {:.0} us, by {:.0} % (99 %: {:.0}..{:.0} %), at most {:.0} %",
            trend.from,
            trend.to,
            trend.change() * 100.0,
            trend.change_low / trend.from * 100.0,
            trend.change_high / trend.from * 100.0,
            share * 100.0
        ),
    })
}

fn disk_over_live(most: f64, sizes: &Sizes) -> Option<Finding> {
    let (on_disk, live) = match (sizes.on_disk, sizes.live) {
        (Some(on_disk), Some(live)) if live > 0.0 => (on_disk as f64, live),
        (None, _) => {
            let detail = "disk-over-live: the data directory is on another machine".to_owned();
            return Some(Finding::LimitUnchecked { detail });
        }
        _ => {
            let detail = "disk-over-live: the documents have no ratio by which they compress".to_owned();
            return Some(Finding::LimitUnchecked { detail });
        }
    };
    (on_disk > most * live).then(|| Finding::LimitExceeded {
        detail: format!(
            "{:.0} MB on disk are {:.2} times the {:.0} MB that the documents come to, at most {most}",
            on_disk / 1e6,
            on_disk / live,
            live / 1e6
        ),
    })
}

fn resident(most: u64, measurement: &Measurement) -> Option<Finding> {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    match measurement.server_resident_max_bytes() {
        Some(found) if found <= most => None,
        Some(found) => Some(Finding::LimitExceeded {
            detail: format!("resident memory {:.0} MB, at most {:.0} MB", megabytes(found), megabytes(most)),
        }),
        None => Some(Finding::LimitUnchecked { detail: "resident: the server is on another machine".to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Bytes;
    use bunko_report::result::ServerSample;
    use bunko_statistics::{LatencyHistogram, Trend};

    fn measured(p999_trend: Option<Trend>, resident_bytes: &[u64]) -> Measurement {
        let sample = |&resident: &u64| ServerSample { resident_bytes: Some(resident), ..ServerSample::default() };
        Measurement {
            requests: 1,
            documents: 1,
            document_bytes: None,
            errors: 0,
            begun_anew: 0,
            elapsed_seconds: 1.0,
            documents_per_second: 1.0,
            offered_rate: None,
            achieved_rate: 1.0,
            latency: LatencyHistogram::default().summary(),
            histogram: String::new(),
            pauses: None,
            parts: Vec::new(),
            intervals: Vec::new(),
            server: resident_bytes.iter().map(sample).collect(),
            server_cpu_seconds: None,
            server_resident_bytes: None,
            journal_syncs: None,
            settling: None,
            p999_trend,
            generator_cpu_seconds: 0.0,
            generator_threads: 1,
            transfer: None,
            set: None,
            cache: String::new(),
            verified_documents: 0,
            findings: Vec::new(),
        }
    }

    fn found(limits: &Limits, measurement: &Measurement, sizes: &Sizes) -> Vec<String> {
        check(limits, measurement, sizes).iter().map(ToString::to_string).collect()
    }

    const NONE: Limits = Limits { p999_rise: None, disk_over_live: None, resident: None };
    const ELSEWHERE: Sizes = Sizes { on_disk: None, live: None };

    #[test]
    fn a_tail_may_rise_as_far_as_noise_or_the_limit_goes() {
        let limits = Limits { p999_rise: Some(0.1), ..NONE };
        let trend = |to, change_low| Some(Trend { from: 2_000.0, to, change_low, change_high: 900.0 });
        assert_eq!(found(&limits, &measured(trend(2_150.0, 50.0), &[]), &ELSEWHERE), [""; 0]);
        assert_eq!(found(&limits, &measured(trend(2_600.0, -10.0), &[]), &ELSEWHERE), [""; 0]);
        assert_eq!(
            found(&limits, &measured(trend(2_600.0, 300.0), &[]), &ELSEWHERE),
            ["limit exceeded: p99.9 rose from 2000 to 2600 us, by 30 % (99 %: 15..45 %), at most 10 %"]
        );
        assert!(found(&limits, &measured(None, &[]), &ELSEWHERE)[0].starts_with("limit unchecked: p999-rise: "));
    }

    #[test]
    fn the_disk_is_compared_with_what_the_documents_come_to() {
        let limits = Limits { disk_over_live: Some(2.5), ..NONE };
        let sizes = |on_disk| Sizes { on_disk: Some(on_disk), live: Some(4e8) };
        assert_eq!(found(&limits, &measured(None, &[]), &sizes(1_000_000_000)), [""; 0]);
        assert_eq!(
            found(&limits, &measured(None, &[]), &sizes(1_200_000_000)),
            ["limit exceeded: 1200 MB on disk are 3.00 times the 400 MB that the documents come to, at most 2.5"]
        );
        assert!(found(&limits, &measured(None, &[]), &ELSEWHERE)[0].contains("another machine"));
        let constant = Sizes { on_disk: Some(1), live: None };
        assert!(found(&limits, &measured(None, &[]), &constant)[0].contains("no ratio"));
    }

    #[test]
    fn memory_is_that_of_the_second_with_most() {
        let limits = Limits { resident: Some(Bytes(250_000_000)), ..NONE };
        assert_eq!(found(&limits, &measured(None, &[249_000_000, 100_000_000]), &ELSEWHERE), [""; 0]);
        assert_eq!(
            found(&limits, &measured(None, &[100_000_000, 260_000_000, 90_000_000]), &ELSEWHERE),
            ["limit exceeded: resident memory 260 MB, at most 250 MB"]
        );
        assert!(found(&limits, &measured(None, &[]), &ELSEWHERE)[0].starts_with("limit unchecked: resident"));
        assert_eq!(found(&NONE, &measured(None, &[]), &ELSEWHERE), [""; 0]);
    }

    #[test]
    fn a_limit_must_be_one() {
        assert!(NONE.check().is_ok());
        assert!(Limits { p999_rise: Some(0.0), ..NONE }.check().is_ok());
        for wrong in [
            Limits { p999_rise: Some(-0.1), ..NONE },
            Limits { disk_over_live: Some(0.0), ..NONE },
            Limits { disk_over_live: Some(f64::NAN), ..NONE },
            Limits { resident: Some(Bytes(0)), ..NONE },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
