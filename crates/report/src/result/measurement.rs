//! The figures of one step.

use super::{BRIEF_SECONDS, Finding, LoopDeviceUse, MachinePauses, SetRecord, TransferRecord};
use bunko_statistics::{LatencySummary, Trend};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One phase of a scenario at one level of concurrency, in one variant, against one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Index into [`super::Report::targets`].
    pub target: usize,
    /// The swept settings that distinguish the variant, in the scenario's order: setting, value.
    pub variant: Vec<(String, String)>,
    /// The phase's name.
    pub phase: String,
    /// The operation, by its name in the lab's table.
    pub operation: String,
    /// Number of sockets.
    pub connections: usize,
    /// Requests in flight on each socket.
    pub in_flight: usize,
    /// A published figure for the same step.
    pub reference: Option<ReferenceFigure>,
    /// Its repetitions, in the order of running.
    pub runs: Vec<Run>,
}

/// A published figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReferenceFigure {
    /// Documents per second.
    pub documents_per_second: f64,
    /// Bytes of documents per second, if they were published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<f64>,
    /// System and machine in a few words.
    pub source: String,
}

/// One repetition of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// From 1.
    pub repetition: u32,
    /// Milliseconds since 1970, by the generator's clock: the starting signal.
    pub started_at_ms: u64,
    /// The result.
    pub outcome: Outcome,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// Figures, believable or not: see the findings.
    Measured(Box<Measurement>),
    /// Not run, because the server cannot do it or the scenario's condition cannot be met here.
    Skipped {
        /// The reason, naming the missing condition.
        reason: String,
    },
}

/// A run's figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Requests answered.
    pub requests: u64,
    /// Documents inserted, found, matched or scanned by successful requests.
    pub documents: u64,
    /// Bytes of those documents; `None` where the operation does not move whole documents.
    pub document_bytes: Option<u64>,
    /// Requests that failed.
    pub errors: u64,
    /// Attempts that failed temporarily and were retried, such as transactions with a conflict.
    #[serde(default, skip_serializing_if = "is_none_at_all")]
    pub begun_anew: u64,
    /// Time from the starting signal to the last reply.
    pub elapsed_seconds: f64,
    /// `documents` over `elapsed_seconds`.
    pub documents_per_second: f64,
    /// The open loop's rate in requests per second; `None` in a closed loop.
    pub offered_rate: Option<f64>,
    /// Requests per second reached.
    pub achieved_rate: f64,
    /// Time from a request's start (in an open loop, its intended start) to its reply.
    pub latency: LatencySummary,
    /// The whole histogram, HdrHistogram V2 deflated, base64.
    pub histogram: String,
    /// How late the machine woke sleeping threads meanwhile; `None` where the lab could not measure it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pauses: Option<MachinePauses>,
    /// The operations that a mixed phase consists of; empty elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<OperationPart>,
    /// One entry per second.
    pub intervals: Vec<Interval>,
    /// The server's side, one entry per second; empty where nothing could be read.
    pub server: Vec<ServerSample>,
    /// The server's user and system time; `None` where it is not on this machine.
    pub server_cpu_seconds: Option<f64>,
    /// The server's resident memory at the end; `None` where it is not on this machine.
    pub server_resident_bytes: Option<u64>,
    /// Syncs of the journal that the server counted during the run; `None` where it does not count them.
    pub journal_syncs: Option<u64>,
    /// Background work of the server after the last reply; `None` where the scenario did not wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settling: Option<Settling>,
    /// Trend of p99.9 during the run, in microseconds; `None` where the run is too short or has too few requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999_trend: Option<Trend>,
    /// User and system time of the generator's threads.
    pub generator_cpu_seconds: f64,
    /// Generator threads.
    pub generator_threads: usize,
    /// The tool's own record of a dump or a restore; `None` for other operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer: Option<TransferRecord>,
    /// The members of the server's replica set; `None` where it has no other members, or the lab may not ask for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<SetRecord>,
    /// The state of caches at the start of the run, as the lab prepared it.
    pub cache: String,
    /// Documents whose contents were read back and compared.
    pub verified_documents: u64,
    /// Reasons to doubt the figures.
    pub findings: Vec<Finding>,
}

/// The server's background work after a run, such as flushes and compaction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settling {
    /// Time from the last reply to the last sign of work.
    pub seconds: f64,
    /// The server's user and system time meanwhile; `None` where it is not on this machine.
    pub server_cpu_seconds: Option<f64>,
}

/// One operation's share of a mixed phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationPart {
    /// The operation, by its name in the lab's table.
    pub operation: String,
    /// Requests answered.
    pub requests: u64,
    /// Latencies of these requests.
    pub latency: LatencySummary,
    /// As [`Measurement::histogram`].
    pub histogram: String,
}

/// One second of a run, counted from its starting signal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Seconds from the starting signal to the interval's beginning.
    pub at_seconds: f64,
    /// Length; the last may be shorter than a second.
    pub seconds: f64,
    /// Requests answered in it.
    pub requests: u64,
    /// Documents of these requests.
    pub documents: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Latencies of the answered requests, failed ones included.
    pub latency: LatencySummary,
    /// The histogram, as [`Measurement::histogram`]; left out of HTML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<String>,
}

/// One second of the server's side. Rates are over the time since the previous sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerSample {
    /// Seconds from the run's starting signal.
    pub at_seconds: f64,
    /// User and system time, 100 = one processor.
    pub cpu_percent: Option<f64>,
    /// Resident memory.
    pub resident_bytes: Option<u64>,
    /// Page faults that read from a device, per second.
    pub major_faults_per_second: Option<f64>,
    /// Bytes per second that the process caused to be read from devices.
    pub device_read_bytes_per_second: Option<f64>,
    /// Bytes per second that the process caused to be written to devices.
    pub device_written_bytes_per_second: Option<f64>,
    /// Bytes that the data directory takes on disk.
    pub disk_bytes: Option<u64>,
    /// Counters of `serverStatus`, per second, and its gauges: name with dots, value.
    pub status: BTreeMap<String, f64>,
}

/// Whether to leave the field out: most operations are never retried.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_none_at_all(count: &u64) -> bool {
    *count == 0
}

impl Measurement {
    /// Share of all attempts that were retried; `None` if none was.
    pub fn vain_share(&self) -> Option<f64> {
        (self.begun_anew > 0).then(|| self.begun_anew as f64 / (self.begun_anew + self.requests) as f64)
    }

    /// The use of the loop device that the server's files lie on; `None` elsewhere.
    pub fn loop_device(&self) -> Option<&LoopDeviceUse> {
        self.findings.iter().find_map(|finding| match finding {
            Finding::LoopDevice(device) => Some(device),
            _ => None,
        })
    }

    /// The server's highest resident memory, from samples once a second.
    pub fn server_resident_max_bytes(&self) -> Option<u64> {
        let seconds = self.server.iter().filter_map(|sample| sample.resident_bytes);
        seconds.chain(self.server_resident_bytes).max()
    }

    /// The server's processor time for the run and for its background work after it, in seconds.
    pub fn settled_cpu_seconds(&self) -> Option<f64> {
        Some(self.server_cpu_seconds? + self.settling?.server_cpu_seconds?)
    }
}

impl Run {
    /// The figures, if there are any.
    pub fn measurement(&self) -> Option<&Measurement> {
        match &self.outcome {
            Outcome::Measured(measurement) => Some(measurement),
            Outcome::Skipped { .. } => None,
        }
    }
}

impl Step {
    /// The figures of all repetitions that have some.
    pub fn measurements(&self) -> impl Iterator<Item = &Measurement> {
        self.runs.iter().filter_map(Run::measurement)
    }

    /// The step's name where the target is known: `bytes 400, insert, 100 x 1`.
    pub fn label(&self) -> String {
        let mut parts: Vec<_> = self.variant.iter().map(|(setting, value)| format!("{setting} {value}")).collect();
        parts.push(self.phase.clone());
        parts.push(self.concurrency());
        parts.join(", ")
    }

    /// Connections x requests in flight on each.
    fn concurrency(&self) -> String {
        format!("{} x {}", self.connections, self.in_flight)
    }

    /// Whether one of its runs is too short to conclude anything from, even with many repetitions.
    pub fn is_brief(&self) -> bool {
        self.measurements().any(|run| run.elapsed_seconds < BRIEF_SECONDS)
    }
}
