//! A phase: one operation, offered in one way.

use super::{Limits, LoadSettings, Span};
use crate::operation::OperationSettings;
use serde::{Deserialize, Serialize};

/// One thing that is done to the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Phase {
    /// Its name, unique in the scenario.
    pub name: String,
    /// What is done: `operation.NAME = { its settings }`.
    pub operation: OperationSettings,
    /// What differs from the scenario's load.
    #[serde(default)]
    pub load: LoadSettings,
    /// The state of caches that it begins with.
    #[serde(default)]
    pub cache: Cache,
    /// Whether its figures are wanted, or it only prepares what follows.
    #[serde(default)]
    pub role: Role,
    /// How long, at most, the server's background work is waited for afterwards; not at all if not set.
    pub settle: Option<Span>,
    /// What its figures must keep.
    #[serde(default)]
    pub limits: Limits,
    /// How many documents the collection must hold after it, where the lab could not know.
    pub expect_count: Option<u64>,
}

/// Whether a phase's figures are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// They are.
    #[default]
    Measure,
    /// It prepares what follows; it is checked, and reported only where it failed.
    Prepare,
}

/// The state of caches that a phase begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cache {
    /// As the phase before left it.
    #[default]
    AsLeft,
    /// Every document has been read once.
    Warm,
    /// The server was restarted and the kernel has forgotten its files; only of a server that the lab started.
    Cold,
}
