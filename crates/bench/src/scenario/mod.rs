//! Scenario files: descriptions of measurements.
//!
//! A scenario is a TOML file. Every built-in scenario is such a file in `crates/bench/scenarios`; `bunko bench show
//! NAME` prints it as an example for new ones.

mod builtin;
mod limits;
mod load;
mod overrides;
mod parse;
mod phase;
mod phase_load;
mod quantity;
mod server;
mod sweep;

pub use builtin::{BUILTIN, Builtin};
pub use limits::Limits;
pub use load::{ArrivalKind, LoadSettings, PlacementSetting, Rate};
pub use overrides::Override;
pub(crate) use overrides::shown;
pub use parse::{ScenarioError, ScenarioSource};
pub use phase::{Cache, Phase, Role};
pub(crate) use phase_load::{EndSettings, PhaseLoad, ReadSettings};
pub use quantity::{Bytes, OneOrMany, Span};
pub use server::{MemberSetting, ServerSettings, TransportSetting};
pub use sweep::{Axis, Variant};

use bunko_dataset::{Compressible, IdKind, KeyOrder};
use bunko_host::allocation::Method;
use serde::{Deserialize, Serialize};

/// A scenario after `--set`, with all settings of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scenario {
    /// Name in reports.
    pub name: String,
    /// Description in one line.
    pub about: String,
    /// Full description and purpose, for later readers of the report.
    pub prose: String,
    /// The published experiment that it repeats: `E1` .. `E5`.
    pub experiment: Option<String>,
    /// Seed of all random choices: the same seed gives the same documents, byte for byte, and the same keys.
    #[serde(default = "one")]
    pub seed: u64,
    /// How often everything is run, each time on fresh data.
    #[serde(default = "three")]
    pub repetitions: u32,
    /// Servers that are measured if the command line names none.
    #[serde(default)]
    pub servers: Servers,
    /// Settings of those servers.
    #[serde(default)]
    pub server: ServerSettings,
    /// The documents.
    pub dataset: DatasetSettings,
    /// Default load of all phases.
    #[serde(default)]
    pub load: LoadSettings,
    /// Settings that take several values in turn. Each variant begins with a fresh server or database.
    #[serde(default)]
    pub sweep: Vec<Axis>,
    /// The order of the variants.
    #[serde(default)]
    pub order: VariantOrder,
    /// The phases, in this order, of each variant.
    pub phase: Vec<Phase>,
    /// Measures how long files take to allocate, without any server.
    pub allocation: Option<AllocationSettings>,
}

/// Servers that the lab itself starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Servers {
    /// One, with its default storage engine.
    #[default]
    One,
    /// One for each storage engine, one after the other.
    EachEngine,
}

/// The order in which a sweep's variants are run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VariantOrder {
    /// In the order of the sweep.
    #[default]
    Written,
    /// In a different order in each repetition, derived from the scenario's seed, so that a variant's after-effects on
    /// the machine do not always affect the same variant.
    Shuffled,
}

/// The documents of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DatasetSettings {
    /// A name from the table of shapes.
    pub shape: String,
    /// Number of documents; this or `total-bytes`.
    pub documents: Option<u64>,
    /// Size of all documents together; this or `documents`.
    pub total_bytes: Option<Bytes>,
    /// Number of collections that share the documents equally.
    #[serde(default = "one")]
    pub collections: u64,
    /// Encoded size of a document; if not set, the shape's own.
    pub document_bytes: Option<Bytes>,
    /// How far the documents compress.
    #[serde(default)]
    pub compressible: Compressible,
    /// The order in which the documents are inserted.
    #[serde(default)]
    pub key_order: KeyOrder,
    /// The type of `_id`; if not set, the shape's own.
    pub id: Option<IdKind>,
    /// Indexes besides `_id` that exist before the first document: `field` or `field,other:-1`.
    #[serde(default)]
    pub indexes: Vec<String>,
}

/// File allocation, measured without any server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct AllocationSettings {
    /// Sizes of the files.
    pub sizes: Vec<Bytes>,
    /// `fallocate`, `zero-fill`, `recycle`.
    pub methods: Vec<String>,
    /// How often each allocation is timed.
    #[serde(default = "three")]
    pub repetitions: u32,
}

impl AllocationSettings {
    /// # Errors
    /// A name that is not a method.
    pub(crate) fn methods(&self) -> Result<Vec<Method>, String> {
        self.methods.iter().map(|name| name.parse()).collect()
    }
}

fn one() -> u64 {
    1
}

fn three() -> u32 {
    3
}
