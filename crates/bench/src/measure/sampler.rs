//! Samples the server once a second: `/proc` if it runs on this machine, `serverStatus` in any case.

use crate::clock;
use crate::server::{Probe, StatusReading};
use bunko_host::ProcessReading;
use bunko_report::result::ServerSample;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

const PERIOD: Duration = Duration::from_secs(1);

/// Tells the sampler that the run is over.
#[derive(Default)]
pub(super) struct Over {
    over: Mutex<bool>,
    changed: Condvar,
}

impl Over {
    pub fn announce(&self) {
        *self.over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits until `time` or the end of the run; true if the run is over.
    fn wait_until(&self, time: Instant) -> bool {
        let over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = time.saturating_duration_since(clock::now());
        let waited = self.changed.wait_timeout_while(over, wait, |over| !*over);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Samples until the run is over.
pub(super) fn sample(probe: &mut Probe, over: &Over) -> Vec<ServerSample> {
    let started = clock::now();
    let mut samples = Vec::new();
    let mut before = Reading::take(probe);
    let mut due = started + PERIOD;
    while !over.wait_until(due) {
        let now = Reading::take(probe);
        samples.push(now.since(&before, started, probe.data_directory()));
        before = now;
        // A server that answers late is sampled again at the next full second, not twice in a row.
        while due <= clock::now() {
            due += PERIOD;
        }
    }
    samples
}

struct Reading {
    at: Instant,
    process: Option<ProcessReading>,
    status: Option<StatusReading>,
}

impl Reading {
    fn take(probe: &mut Probe) -> Self {
        let status = probe.status();
        Self { at: clock::now(), process: probe.process(), status }
    }

    fn since(&self, before: &Self, started: Instant, data_directory: Option<&PathBuf>) -> ServerSample {
        let seconds = (self.at - before.at).as_secs_f64();
        let used = self.process.as_ref().zip(before.process.as_ref()).map(|(now, before)| now.since(before));
        let rate = |count: Option<u64>| count.map(|count| count as f64 / seconds);
        let status = match (&self.status, &before.status) {
            (Some(now), Some(before)) => now.since(before, seconds),
            _ => std::collections::BTreeMap::new(),
        };
        ServerSample {
            at_seconds: (self.at - started).as_secs_f64(),
            cpu_percent: used.map(|used| used.cpu.as_secs_f64() / seconds * 100.0),
            resident_bytes: self.process.as_ref().map(|process| process.resident_bytes),
            major_faults_per_second: rate(used.map(|used| used.major_faults)),
            device_read_bytes_per_second: rate(used.and_then(|used| used.read_bytes)),
            device_written_bytes_per_second: rate(used.and_then(|used| used.written_bytes)),
            disk_bytes: data_directory.map(|directory| bunko_host::directory_bytes(directory)),
            status,
        }
    }
}
