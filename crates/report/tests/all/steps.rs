//! Parts of reports that scripts describe.

use bunko_report::result::{Measurement, Transport};
use bunko_statistics::LatencyHistogram;

pub fn transport(name: &str) -> Transport {
    match name {
        "tcp" => Transport::Tcp,
        "unix" => Transport::Unix,
        other => panic!("no transport {other}"),
    }
}

/// Removes the figures that are compared.
pub fn clear_figures(measurement: &mut Measurement) {
    measurement.latency = LatencyHistogram::default().summary();
    measurement.server_cpu_seconds = None;
    measurement.documents_per_second = 0.0;
    measurement.generator_cpu_seconds = 0.0;
    measurement.intervals.clear();
    measurement.server.clear();
}
