//! A phase: one operation with its load.

use super::{Limits, LoadSettings, Span};
use crate::operation::OperationSettings;
use serde::{Deserialize, Serialize};

/// One operation on the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Phase {
    /// Its name, unique in the scenario.
    pub name: String,
    /// The operation: `operation.NAME = { its settings }`.
    pub operation: OperationSettings,
    /// Settings that differ from the scenario's load.
    #[serde(default)]
    pub load: LoadSettings,
    /// State of the caches before it.
    #[serde(default)]
    pub cache: Cache,
    /// Whether its figures are reported, or it only prepares later phases.
    #[serde(default)]
    pub role: Role,
    /// Longest wait for the server's background work afterwards; no wait if not set.
    pub settle: Option<Span>,
    /// Limits of its figures.
    #[serde(default)]
    pub limits: Limits,
    /// Number of documents that the collection must hold afterwards, if the lab cannot know it.
    pub expect_count: Option<u64>,
}

/// Whether a phase's figures are reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The figures are reported.
    #[default]
    Measure,
    /// The phase prepares later ones; it is checked, and reported only if it failed.
    Prepare,
}

/// State of the caches before a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cache {
    /// As the previous phase left them.
    #[default]
    AsLeft,
    /// Every document has been read once.
    Warm,
    /// The server was restarted and the kernel has dropped its files' pages. Only possible for a server that the lab
    /// started.
    Cold,
}
