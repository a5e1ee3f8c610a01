//! Scenario files: what is measured, written down.
//!
//! A scenario is a TOML file. Every built-in one is such a file in `crates/bench/scenarios`; `bunko bench show NAME`
//! prints it, and it is the best example for one's own.

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
pub use server::{ServerSettings, TransportSetting};
pub use sweep::{Axis, Variant};

use bunko_dataset::{Compressible, IdKind, KeyOrder};
use bunko_host::allocation::Method;
use serde::{Deserialize, Serialize};

/// A scenario after `--set`, with everything in it that a run needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scenario {
    /// What reports call it.
    pub name: String,
    /// One line.
    pub about: String,
    /// What it does and why, for whoever reads the report in ten years.
    pub prose: String,
    /// The published experiment that it repeats: `E1` .. `E5`.
    pub experiment: Option<String>,
    /// Seed of all random choices: the same seed gives the same documents, byte for byte, and the same keys.
    #[serde(default = "one")]
    pub seed: u64,
    /// How often everything is run, on fresh data each time.
    #[serde(default = "three")]
    pub repetitions: u32,
    /// What is measured where the command line names no server.
    #[serde(default)]
    pub servers: Servers,
    /// How those are to be.
    #[serde(default)]
    pub server: ServerSettings,
    /// The documents.
    pub dataset: DatasetSettings,
    /// How the load is offered, where a phase says nothing else.
    #[serde(default)]
    pub load: LoadSettings,
    /// Settings that take several values in turn. Each variant begins with a fresh server or database.
    #[serde(default)]
    pub sweep: Vec<Axis>,
    /// The order of the variants.
    #[serde(default)]
    pub order: VariantOrder,
    /// What is done, in this order, in each variant.
    pub phase: Vec<Phase>,
    /// Measures how long files take to allocate, apart from any server.
    pub allocation: Option<AllocationSettings>,
}

/// Which servers the lab starts itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Servers {
    /// One, with its default storage engine.
    #[default]
    One,
    /// One after the other, one for each storage engine that exists.
    EachEngine,
}

/// The order in which a sweep's variants are run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VariantOrder {
    /// As the sweep has them.
    #[default]
    Written,
    /// Another in each repetition, from the scenario's seed: what one variant leaves behind on the machine meets
    /// another one each time.
    Shuffled,
}

/// The documents of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DatasetSettings {
    /// A name from the table of shapes.
    pub shape: String,
    /// How many there are; this or `total-bytes`.
    pub documents: Option<u64>,
    /// How many bytes they have together; this or `documents`.
    pub total_bytes: Option<Bytes>,
    /// How many collections they are spread over, as many in each.
    #[serde(default = "one")]
    pub collections: u64,
    /// Encoded size of one; `None` is the shape's own.
    pub document_bytes: Option<Bytes>,
    /// How far they compress.
    #[serde(default)]
    pub compressible: Compressible,
    /// The order in which they are inserted.
    #[serde(default)]
    pub key_order: KeyOrder,
    /// The type of `_id`; `None` is the shape's own.
    pub id: Option<IdKind>,
    /// Indexes besides `_id` that exist before the first document: `field` or `field,other:-1`.
    #[serde(default)]
    pub indexes: Vec<String>,
}

/// File allocation, measured apart from any server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct AllocationSettings {
    /// Sizes of the files.
    pub sizes: Vec<Bytes>,
    /// `fallocate`, `zero-fill`, `recycle`.
    pub methods: Vec<String>,
    /// How often each is timed.
    #[serde(default = "three")]
    pub repetitions: u32,
}

impl AllocationSettings {
    /// # Errors
    /// A name that is no method.
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
