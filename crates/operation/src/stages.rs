//! Memory limits of stages that gather their input.

use crate::{DiskUse, Helpers, ScratchSpace};
use std::any::Any;
use std::sync::Arc;

/// Maximum number of bytes that a stage may gather before it spills or fails.
/// Source: MongoDB limits, "Aggregation Pipeline Stages", 100 megabytes.
pub const STAGE_BYTES_MAX: u64 = 100 * 1024 * 1024;

/// Stages that gather their input; each has its own limit.
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
    /// Documents of the other collection in a `$lookup`.
    Lookup,
    /// Documents of the other collection and of one search in a `$graphLookup`.
    GraphLookup,
}

impl Gatherer {
    /// All stages that gather, in order.
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

/// The limits of all stages; each applies to one stage.
#[derive(Clone, Debug)]
pub struct StageLimits {
    bytes_max: [u64; Gatherer::ALL.len()],
    /// The place of scratch files, if there is one.
    pub scratch: Option<Arc<dyn ScratchSpace>>,
    /// Whether stages may spill, unless the operation sets it.
    pub disk_use: DiskUse,
    /// Whether stages may run scripts of clients.
    pub scripting: Scripting,
    /// The host of scripts; without one they run in this process.
    pub script_host: Option<Arc<ScriptHost>>,
    /// Maximum number of threads that work for one operation at once.
    pub workers_max: u32,
    /// Permits for second threads.
    pub helpers: Arc<Helpers>,
}

/// Default number of threads per operation.
pub const WORKERS_MAX: u32 = 2;

/// The host of scripts. Only the crate that runs scripts knows its type.
pub type ScriptHost = dyn Any + Send + Sync;

/// Whether scripts of clients are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scripting {
    /// Scripts may run.
    Allowed,
    /// A command with a script is refused.
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

    /// Sets the permits for second threads.
    #[must_use]
    pub fn with_helpers(self, helpers: Arc<Helpers>) -> Self {
        Self { helpers, ..self }
    }

    /// Sets the place of scratch files, if there is one.
    #[must_use]
    pub fn with_scratch(self, scratch: Option<Arc<dyn ScratchSpace>>) -> Self {
        Self { scratch, ..self }
    }

    /// Sets whether scripts of clients are allowed.
    #[must_use]
    pub fn with_scripting(self, scripting: Scripting) -> Self {
        Self { scripting, ..self }
    }

    /// Sets the host of scripts.
    #[must_use]
    pub fn with_script_host(self, script_host: Arc<ScriptHost>) -> Self {
        Self { script_host: Some(script_host), ..self }
    }

    /// Maximum number of bytes that a stage may gather.
    pub fn bytes_max(&self, gatherer: Gatherer) -> u64 {
        self.bytes_max[gatherer as usize]
    }

    /// Sets the most bytes that a stage may gather.
    pub fn set_bytes_max(&mut self, gatherer: Gatherer, bytes_max: u64) {
        self.bytes_max[gatherer as usize] = bytes_max;
    }
}
