//! The result of one run of a scenario, as it stands in the report's JSON.

mod finding;
mod measurement;
mod pauses;
mod provenance;
mod side_results;
mod transfer;

pub use finding::{BRIEF_SECONDS, Badge, Ended, Finding, LoopDeviceUse, RATE_KEPT_MIN, Severity};
pub use measurement::{
    Interval, Measurement, OperationPart, Outcome, ReferenceFigure, Run, ServerSample, Settling, Step,
};
pub use pauses::{MachinePauses, SleepPriority, lateness};
pub use provenance::{Machine, ScenarioRecord, TargetRecord, Transport, WorkerShare};
pub use side_results::{AllocationRecord, StorageRecord, StorageReference};
pub use transfer::{ActivityTime, TransferRecord};

use serde::{Deserialize, Serialize};

/// The version of the JSON format; a report of another is refused.
pub const FORMAT: u32 = 1;

/// A scenario's whole result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of the program that wrote it.
    pub lab_version: String,
    /// The command line that repeats the run, the program's name first.
    pub command: Vec<String>,
    /// What was run.
    pub scenario: ScenarioRecord,
    /// Milliseconds since 1970, by the generator's clock.
    pub started_at_ms: u64,
    /// Milliseconds since 1970, by the generator's clock.
    pub ended_at_ms: u64,
    /// Whether the run reached its end.
    pub completion: Completion,
    /// Where several generators share the load: which one this is, or how many were merged.
    pub worker: Option<WorkerShare>,
    /// Where the generator ran.
    pub machine: Machine,
    /// What was measured; more than one where servers or engines are compared.
    pub targets: Vec<TargetRecord>,
    /// Every step of every target, in the order of the scenario.
    pub steps: Vec<Step>,
    /// What the data took on the server at the end, per target and variant.
    pub storage: Vec<StorageRecord>,
    /// How long file allocation took, where the scenario asked.
    pub allocations: Vec<AllocationRecord>,
}

/// Whether a run reached its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Completion {
    /// Every step was run.
    Complete,
    /// The user stopped it; what was measured until then is in the report.
    Interrupted,
    /// A step failed so that the following ones could not run.
    Failed {
        /// In words.
        reason: String,
    },
}
