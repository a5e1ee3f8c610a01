//! The result of one run of a scenario, as in the report's JSON.

mod finding;
mod measurement;
mod pauses;
mod provenance;
mod set;
mod side_results;
mod transfer;

pub use finding::{BRIEF_SECONDS, Badge, Ended, Finding, LoopDeviceUse, RATE_KEPT_MIN, Severity};
pub use measurement::{
    Interval, Measurement, OperationPart, Outcome, ReferenceFigure, Run, ServerSample, Settling, Step,
};
pub use pauses::{MachinePauses, SleepPriority, lateness};
pub use provenance::{Machine, ScenarioRecord, TargetRecord, Transport, WorkerShare};
pub use set::{MemberRecord, SetRecord};
pub use side_results::{AllocationRecord, StorageRecord, StorageReference};
pub use transfer::{ActivityTime, TransferRecord};

use serde::{Deserialize, Serialize};

/// The version of the JSON format. Reports of other versions are refused.
pub const FORMAT: u32 = 1;

/// A scenario's whole result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of the program that wrote it.
    pub lab_version: String,
    /// The command line that repeats the run, with the program's name.
    pub command: Vec<String>,
    /// The scenario that was run.
    pub scenario: ScenarioRecord,
    /// Milliseconds since 1970, by the generator's clock.
    pub started_at_ms: u64,
    /// Milliseconds since 1970, by the generator's clock.
    pub ended_at_ms: u64,
    /// Whether the run reached its end.
    pub completion: Completion,
    /// If several generators share the load: the index of this one, or the number of merged ones.
    pub worker: Option<WorkerShare>,
    /// The generator's machine.
    pub machine: Machine,
    /// The measured servers; several where servers or engines are compared.
    pub targets: Vec<TargetRecord>,
    /// Every step of every target, in the order of the scenario.
    pub steps: Vec<Step>,
    /// Size of the data on the server at the end, per target and variant.
    pub storage: Vec<StorageRecord>,
    /// Times of file allocation, if the scenario measures them.
    pub allocations: Vec<AllocationRecord>,
}

/// Whether a run reached its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Completion {
    /// Every step was run.
    Complete,
    /// The user stopped the run; figures measured until then are in the report.
    Interrupted,
    /// A step failed, so the following ones could not run.
    Failed {
        /// The reason, in words.
        reason: String,
    },
}
