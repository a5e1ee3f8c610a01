//! The advice, as text and as JSON.

use crate::printable::printable;
use std::fmt;

/// The subject of an advice, in the order of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An index that operations need.
    MissingIndex,
    /// An index that another one can stand for.
    RedundantIndex,
    /// An index that no operation uses.
    UnusedIndex,
    /// An index whose values find too many documents.
    UnselectiveIndex,
    /// Documents that are large, or grow.
    LargeDocuments,
}

impl Kind {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::MissingIndex => "missingIndex",
            Self::RedundantIndex => "redundantIndex",
            Self::UnusedIndex => "unusedIndex",
            Self::UnselectiveIndex => "unselectiveIndex",
            Self::LargeDocuments => "largeDocuments",
        }
    }

    fn heading(self) -> &'static str {
        match self {
            Self::MissingIndex => "Missing indexes",
            Self::RedundantIndex => "Redundant indexes",
            Self::UnusedIndex => "Unused indexes",
            Self::UnselectiveIndex => "Indexes that find too many documents",
            Self::LargeDocuments => "Large documents",
        }
    }
}

/// One advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The subject of the advice.
    pub kind: Kind,
    /// The collection.
    pub namespace: String,
    /// The facts that the advice follows from.
    pub evidence: String,
    /// The expected gain, and the cost.
    pub effect: String,
    /// A script of the shell that does it; empty if the application must change.
    pub command: String,
    /// Milliseconds of the operations in the evidence that the advice would save at most.
    pub saved_ms: u64,
}

/// All advice.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Address of the server.
    pub server: String,
    /// Number of operations in the evidence.
    pub operations: u64,
    /// Number of collections that were looked at.
    pub collections: u64,
    /// Sorted by kind, and then by gain, the greatest first.
    pub advice: Vec<Advice>,
    /// Lists that the server refused to show, with its refusal.
    pub skipped: Vec<String>,
}

impl Report {
    /// One JSON object.
    pub fn to_json(&self) -> String {
        let advice: Vec<_> = self
            .advice
            .iter()
            .map(|advice| {
                serde_json::json!({
                    "kind": advice.kind.name(), "namespace": advice.namespace, "evidence": advice.evidence,
                    "effect": advice.effect, "command": advice.command, "savedMillis": advice.saved_ms,
                })
            })
            .collect();
        serde_json::json!({
            "server": self.server, "operations": self.operations, "collections": self.collections,
            "advice": advice, "skipped": self.skipped,
        })
        .to_string()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} collections, {} operations read", self.server, self.collections, self.operations)?;
        let mut heading = None;
        for advice in &self.advice {
            if heading.replace(advice.kind) != Some(advice.kind) {
                writeln!(f, "\n{}", advice.kind.heading())?;
            }
            writeln!(f, "  {}: {}", printable(&advice.namespace), printable(&advice.evidence))?;
            writeln!(f, "      {}", advice.effect)?;
            if !advice.command.is_empty() {
                writeln!(f, "      {}", printable(&advice.command))?;
            }
        }
        if self.advice.is_empty() {
            writeln!(f, "\nNo advice.")?;
        }
        for skipped in &self.skipped {
            writeln!(f, "\nNot looked at: {}", printable(skipped))?;
        }
        Ok(())
    }
}
