//! Result of a restore.

use crate::ToolError;
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;

/// Result of a run; if an error ended it, the work until then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoreSummary {
    /// In the order of the dump.
    pub namespaces: Vec<NamespaceSummary>,
    /// Oplog entries that were applied.
    pub oplog_entries: u64,
    /// Differences between dump and server after `--verify`; `None` if it was not asked for.
    pub differences: Option<Vec<String>>,
    /// Notes on omissions that are not errors.
    pub warnings: Vec<String>,
    /// Time from the first byte read to the end.
    pub elapsed: Duration,
}

/// Progress of a namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NamespaceOutcome {
    /// The namespace was not restored to its end.
    #[default]
    Unfinished,
    /// All documents that the server accepted are stored.
    Restored,
    /// The namespace was abandoned.
    Failed,
}

/// Result for one namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceSummary {
    /// Name in the dump.
    pub source: String,
    /// Name on the server.
    pub target: String,
    /// `collection`, `view`, `timeseries`, `users` or `roles`.
    pub kind: &'static str,
    /// Size according to the dump, in bytes: of its documents (archive) or of its file (directory).
    pub size_bytes: u64,
    /// How far it was restored.
    pub state: NamespaceOutcome,
    /// Documents on the server; in a dry run, documents that were read.
    pub documents: u64,
    /// Bytes of these documents.
    pub bytes: u64,
    /// Documents that the server refused.
    pub failures: u64,
    /// Refused documents whose key another document has.
    pub key_failures: u64,
    /// Indexes that were built, without the one on `_id`.
    pub indexes_built: u64,
    /// Indexes that the server refused, with its reasons.
    pub indexes_refused: Vec<String>,
    /// The first errors.
    pub errors: Vec<String>,
}

impl RestoreSummary {
    /// Whether everything that was asked for is on the server.
    pub fn is_clean(&self) -> bool {
        self.namespaces.iter().all(NamespaceSummary::is_clean) && self.differences.as_ref().is_none_or(Vec::is_empty)
    }

    /// Documents in all namespaces.
    pub fn documents(&self) -> u64 {
        self.namespaces.iter().map(|namespace| namespace.documents).sum()
    }

    /// Bytes of documents in all namespaces.
    pub fn bytes(&self) -> u64 {
        self.namespaces.iter().map(|namespace| namespace.bytes).sum()
    }

    /// Refused documents in all namespaces.
    pub fn failures(&self) -> u64 {
        self.namespaces.iter().map(|namespace| namespace.failures).sum()
    }

    /// Text on all namespaces with errors and all differences; empty if there are none.
    pub fn troubles(&self) -> String {
        let namespaces = self.namespaces.iter().filter(|namespace| !namespace.is_clean()).map(ToString::to_string);
        let differences = self.differences.iter().flatten().map(|difference| format!("differs: {difference}\n"));
        namespaces.chain(differences).collect()
    }

    /// The whole summary, as one JSON object.
    pub fn to_json(&self) -> String {
        let line = json!({
            "event": "summary",
            "elapsedSeconds": (self.elapsed.as_secs_f64() * 1000.0).round() / 1000.0,
            "documents": self.documents(),
            "failures": self.failures(),
            "oplogEntries": self.oplog_entries,
            "differences": self.differences,
            "warnings": self.warnings,
            "namespaces": self.namespaces.iter().map(NamespaceSummary::to_json).collect::<Vec<_>>(),
        });
        line.to_string()
    }

    /// The output of `--list`: one line per namespace with its kind and size.
    pub fn listing(&self) -> String {
        let lines = self.namespaces.iter().map(|namespace| {
            let renamed = if namespace.source == namespace.target { "" } else { " -> " };
            let target = if renamed.is_empty() { "" } else { namespace.target.as_str() };
            format!("{}{renamed}{target}\t{}\t{} bytes\n", namespace.source, namespace.kind, namespace.size_bytes)
        });
        lines.collect()
    }
}

impl NamespaceOutcome {
    fn name(self) -> &'static str {
        match self {
            Self::Unfinished => "unfinished",
            Self::Restored => "restored",
            Self::Failed => "failed",
        }
    }
}

impl NamespaceSummary {
    fn is_clean(&self) -> bool {
        self.failures == 0
            && self.state == NamespaceOutcome::Restored
            && self.errors.is_empty()
            && self.indexes_refused.is_empty()
    }

    fn to_json(&self) -> Value {
        json!({
            "source": self.source,
            "target": self.target,
            "kind": self.kind,
            "state": self.state.name(),
            "documents": self.documents,
            "bytes": self.bytes,
            "failures": self.failures,
            "indexesBuilt": self.indexes_built,
            "indexesRefused": self.indexes_refused,
            "errors": self.errors,
        })
    }
}

impl fmt::Display for RestoreSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for namespace in &self.namespaces {
            namespace.fmt(f)?;
        }
        for warning in &self.warnings {
            writeln!(f, "warning: {warning}")?;
        }
        if self.oplog_entries > 0 {
            writeln!(f, "{} oplog entries applied", self.oplog_entries)?;
        }
        match &self.differences {
            None => {}
            Some(none) if none.is_empty() => writeln!(f, "verified: the server has what the dump has")?,
            Some(differences) => {
                for difference in differences {
                    writeln!(f, "differs: {difference}")?;
                }
            }
        }
        let (documents, failures) = (self.documents(), self.failures());
        write!(f, "{documents} document(s) restored, {failures} failed, {:.1} s", self.elapsed.as_secs_f64())
    }
}

impl fmt::Display for NamespaceSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}, {} document(s), {} bytes", self.target, self.state.name(), self.documents, self.bytes)?;
        if self.failures > 0 {
            write!(f, ", {} failed", self.failures)?;
        }
        if self.indexes_built > 0 {
            write!(f, ", {} index(es)", self.indexes_built)?;
        }
        writeln!(f)?;
        for refused in &self.indexes_refused {
            writeln!(f, "  index {refused}")?;
        }
        for error in &self.errors {
            writeln!(f, "  {error}")?;
        }
        Ok(())
    }
}

/// An error that ended a restore early, and the result until then.
#[derive(Debug)]
pub struct RestoreError {
    /// The error.
    pub cause: ToolError,
    /// Result until then.
    pub summary: Box<RestoreSummary>,
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.cause, self.summary)
    }
}

impl std::error::Error for RestoreError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn namespace() -> NamespaceSummary {
        NamespaceSummary {
            source: "a.b".to_owned(),
            target: "c.d".to_owned(),
            kind: "collection",
            size_bytes: 100,
            state: NamespaceOutcome::Restored,
            documents: 2,
            bytes: 90,
            failures: 0,
            key_failures: 0,
            indexes_built: 1,
            indexes_refused: Vec::new(),
            errors: Vec::new(),
        }
    }

    #[test]
    fn it_prints_what_was_done() {
        let mut summary = RestoreSummary { namespaces: vec![namespace()], ..RestoreSummary::default() };
        assert!(summary.is_clean());
        assert_eq!(summary.listing(), "a.b -> c.d\tcollection\t100 bytes\n");
        summary.namespaces[0].failures = 1;
        summary.namespaces[0].indexes_refused.push("x_1: no such kind".to_owned());
        summary.namespaces[0].errors.push("_id 7: E11000".to_owned());
        summary.differences = Some(vec!["c.d: 2 documents, not 3".to_owned()]);
        assert!(!summary.is_clean());
        let expected = "c.d: restored, 2 document(s), 90 bytes, 1 failed, 1 index(es)
  index x_1: no such kind
  _id 7: E11000
differs: c.d: 2 documents, not 3
2 document(s) restored, 1 failed, 0.0 s";
        assert_eq!(summary.to_string(), expected);
        summary.namespaces.push(namespace());
        let wrong = "c.d: restored, 2 document(s), 90 bytes, 1 failed, 1 index(es)
  index x_1: no such kind
  _id 7: E11000
differs: c.d: 2 documents, not 3
";
        assert_eq!(summary.troubles(), wrong);
        let json = r#"{"event":"summary","elapsedSeconds":0.0,"documents":2,"failures":0,"oplogEntries":0,"differences":null,"warnings":[],"namespaces":[{"source":"a.b","target":"c.d","kind":"collection","state":"restored","documents":2,"bytes":90,"failures":0,"indexesBuilt":1,"indexesRefused":[],"errors":[]}]}"#;
        let clean = RestoreSummary { namespaces: vec![namespace()], ..RestoreSummary::default() };
        assert_eq!((clean.to_json().as_str(), clean.troubles().as_str()), (json, ""));
    }
}
