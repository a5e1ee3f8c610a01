//! Reasons why reports cannot be merged.

use std::fmt;

/// Longest time between the starting signals of one run, by the server's clock: the seconds of all workers are added.
pub(super) const STARTS_APART_MS_MAX: f64 = 1_000.0;

/// The reason why reports are not the shares of one run.
#[derive(Clone, Debug, PartialEq)]
pub enum MergeRefusal {
    /// There is no report.
    Nothing,
    /// A report of another version of the JSON format.
    Format {
        /// Number of the report, from 1.
        report: usize,
        /// Format of the report.
        found: u32,
    },
    /// A report of a single generator, or a merged report.
    NotAShare {
        /// Number of the report, from 1.
        report: usize,
    },
    /// Shares of runs with different numbers of workers.
    CountsDiffer {
        /// Two of these numbers.
        counts: (u32, u32),
    },
    /// Two reports of the same worker.
    Duplicate {
        /// The worker's index.
        worker: u32,
    },
    /// The report of a worker is missing.
    Missing {
        /// The worker's index.
        worker: u32,
        /// How many workers there are.
        count: u32,
    },
    /// A worker whose index is not below the number of workers.
    IndexBeyondCount {
        /// The worker's index.
        worker: u32,
        /// How many workers there are.
        count: u32,
    },
    /// Two workers did different work, or used different servers.
    Differs {
        /// The property that differs.
        what: &'static str,
        /// The workers' indexes.
        workers: (u32, u32),
        /// The values.
        values: (String, String),
    },
    /// A worker started a server of its own, so the workers measured different servers.
    EmbeddedServer {
        /// The worker's index.
        worker: u32,
        /// The server's label.
        target: String,
    },
    /// Two workers did not run the same steps.
    StepsDiffer {
        /// The workers' indexes.
        workers: (u32, u32),
        /// The steps that only one of them has.
        detail: String,
    },
    /// A worker could not compare its clock with the server's.
    ClockUnknown {
        /// The worker's index.
        worker: u32,
    },
    /// The starting signals of one run are too far apart to add up its seconds.
    StartsApart {
        /// The step and repetition.
        run: String,
        /// The first and the last worker to start.
        workers: (u32, u32),
        /// The time between them, by the server's clock.
        apart_ms: f64,
    },
    /// A histogram cannot be read, or is missing where requests were counted.
    Histogram {
        /// The worker's index.
        worker: u32,
        /// The step and repetition.
        run: String,
        /// The error.
        detail: String,
    },
}

impl fmt::Display for MergeRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("there is no report"),
            Self::Format { report, found } => {
                write!(f, "report {report} has format {found}, this program reads {}", crate::result::FORMAT)
            }
            Self::NotAShare { report } => write!(f, "report {report} is not one worker's share (--worker INDEX/COUNT)"),
            Self::CountsDiffer { counts: (one, other) } => {
                write!(f, "one report is a share of {one} workers, another of {other}")
            }
            Self::Duplicate { worker } => write!(f, "there are two reports of worker {worker}"),
            Self::Missing { worker, count } => write!(f, "the report of worker {worker} (of 0..{count}) is missing"),
            Self::IndexBeyondCount { worker, count } => write!(f, "worker {worker} is not one of 0..{count}"),
            Self::Differs { what, workers, values } => {
                let ((one, other), (value, another)) = (workers, values);
                write!(f, "workers {one} and {other} differ in {what}: {value}, {another}")
            }
            Self::EmbeddedServer { worker, target } => {
                write!(f, "worker {worker} measured an embedded server of its own ({target}), not one that all share")
            }
            Self::StepsDiffer { workers: (one, other), detail } => {
                write!(f, "workers {one} and {other} did not run the same steps: {detail}")
            }
            Self::ClockUnknown { worker } => {
                write!(f, "worker {worker} could not compare its clock with the server's")
            }
            Self::StartsApart { run, workers: (first, last), apart_ms } => write!(
                f,
                "{run}: worker {last} started {:.1} s after worker {first} by the server's clock, more than {:.0} s",
                apart_ms / 1e3,
                STARTS_APART_MS_MAX / 1e3
            ),
            Self::Histogram { worker, run, detail } => write!(f, "{run}: histogram of worker {worker}: {detail}"),
        }
    }
}
