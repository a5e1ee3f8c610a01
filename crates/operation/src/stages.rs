//! What stages that gather their input may hold in memory.

use crate::{DiskUse, Helpers, ScratchSpace};
use std::any::Any;
use std::sync::Arc;

/// What a stage may gather before it goes on disk, or fails, in bytes.
/// Source: MongoDB limits, "Aggregation Pipeline Stages", 100 megabytes.
pub const STAGE_BYTES_MAX: u64 = 100 * 1024 * 1024;

/// Stages that gather their input, by what limits them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gatherer {
    /// A sort of a find or of a pipeline.
    Sort,
    /// `$group`.
    Group,
    /// `$bucketAuto`.
    BucketAuto,
    /// `$setWindowFields`.
    Window,
    /// `$densify`.
    Densify,
    /// `$facet`.
    Facet,
    /// What `$lookup` keeps of the other collection.
    Lookup,
    /// What `$graphLookup` keeps of the other collection, and of one search.
    GraphLookup,
}

impl Gatherer {
    /// All of them, in their order.
    pub const ALL: [Self; 8] = [
        Self::Sort,
        Self::Group,
        Self::BucketAuto,
        Self::Window,
        Self::Densify,
        Self::Facet,
        Self::Lookup,
        Self::GraphLookup,
    ];
}

/// The limits of all stages, each stage for itself.
#[derive(Clone, Debug)]
pub struct StageLimits {
    bytes_max: [u64; Gatherer::ALL.len()],
    /// Where scratch files go, if there is such a place.
    pub scratch: Option<Arc<dyn ScratchSpace>>,
    /// Whether they may be used unless the operation itself says so.
    pub disk_use: DiskUse,
    /// Whether stages may run scripts of clients.
    pub scripting: Scripting,
    /// What runs them; without it they run within the process.
    pub script_host: Option<Arc<ScriptHost>>,
    /// Most threads that work for one operation at once.
    pub workers_max: u32,
    /// Who may help.
    pub helpers: Arc<Helpers>,
}

/// Threads that work for one operation, unless something else is said.
pub const WORKERS_MAX: u32 = 2;

/// What runs scripts of clients, as the crate that knows scripts knows it.
pub type ScriptHost = dyn Any + Send + Sync;

/// Whether scripts of clients are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scripting {
    /// They are, on threads of their own.
    Allowed,
    /// Whatever has one is refused.
    Refused,
}

impl StageLimits {
    /// MongoDB's limits, without a place for scratch files.
    pub fn in_memory() -> Self {
        Self {
            bytes_max: [STAGE_BYTES_MAX; Gatherer::ALL.len()],
            scratch: None,
            disk_use: DiskUse::Allowed,
            scripting: Scripting::Allowed,
            script_host: None,
            workers_max: WORKERS_MAX,
            helpers: Arc::default(),
        }
    }

    /// The same with threads that may help.
    #[must_use]
    pub fn with_helpers(self, helpers: Arc<Helpers>) -> Self {
        Self { helpers, ..self }
    }

    /// The same with a place for scratch files, where there is one.
    #[must_use]
    pub fn with_scratch(self, scratch: Option<Arc<dyn ScratchSpace>>) -> Self {
        Self { scratch, ..self }
    }

    /// The same with scripts of clients, or without.
    #[must_use]
    pub fn with_scripting(self, scripting: Scripting) -> Self {
        Self { scripting, ..self }
    }

    /// Limits whose scripts run there.
    #[must_use]
    pub fn with_script_host(self, script_host: Arc<ScriptHost>) -> Self {
        Self { script_host: Some(script_host), ..self }
    }

    /// What a stage may gather, in bytes.
    pub fn bytes_max(&self, gatherer: Gatherer) -> u64 {
        self.bytes_max[gatherer as usize]
    }

    /// Sets what a stage may gather, in bytes.
    pub fn set_bytes_max(&mut self, gatherer: Gatherer, bytes_max: u64) {
        self.bytes_max[gatherer as usize] = bytes_max;
    }
}
