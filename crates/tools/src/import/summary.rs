//! The result of an import.

use parking_lot::Mutex;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of errors that are reported; the others are only counted.
const ERRORS_TOLD_MAX: usize = 20;

/// The result of an import, in documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportSummary {
    /// Inserted, replaced, merged or deleted, by earlier runs too.
    pub imported: u64,
    /// Documents among `imported` that an earlier run did.
    pub earlier: u64,
    /// Documents among `imported` that were sent again, and that the server had already.
    pub already_there: u64,
    /// Refused by the server.
    pub failed: u64,
    /// Records that became no write: a value was not of its column's type, or a deletion's key fields were missing.
    pub skipped: u64,
    /// The first errors, one sentence each.
    pub errors: Vec<String>,
    /// Whether documents were deleted instead of imported.
    pub is_deletion: bool,
}

impl fmt::Display for ImportSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.troubles())?;
        if self.earlier > 0 {
            writeln!(f, "{} document(s) were imported by an earlier run.", self.earlier)?;
        }
        if self.already_there > 0 {
            writeln!(f, "{} document(s) were sent again, and were there already.", self.already_there)?;
        }
        if self.skipped > 0 {
            writeln!(f, "{} record(s) skipped.", self.skipped)?;
        }
        let (done, failed) = if self.is_deletion { ("deleted", "delete") } else { ("imported", "import") };
        write!(f, "{} document(s) {done} successfully. {} document(s) failed to {failed}.", self.imported, self.failed)
    }
}

impl ImportSummary {
    /// One JSON object.
    pub fn to_json(&self) -> String {
        serde_json::json!({
            "event": "summary",
            "imported": self.imported,
            "importedByEarlierRuns": self.earlier,
            "alreadyThere": self.already_there,
            "failed": self.failed,
            "skipped": self.skipped,
            "errors": self.errors,
        })
        .to_string()
    }

    /// The errors, one a line.
    pub fn troubles(&self) -> String {
        let mut lines = self.errors.clone();
        let told = self.errors.len() as u64;
        if self.failed > told && told as usize == ERRORS_TOLD_MAX {
            lines.push(format!("... and {} more errors", self.failed - told));
        }
        lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
    }
}

/// Counts that the threads of an import share.
#[derive(Default)]
pub(super) struct Tally {
    pub imported: AtomicU64,
    pub earlier: AtomicU64,
    pub already_there: AtomicU64,
    pub failed: AtomicU64,
    pub skipped: AtomicU64,
    errors: Mutex<Vec<String>>,
}

impl Tally {
    /// Counts `count`.
    pub(super) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }

    /// Notes an error that does not end the import; only the first are kept.
    pub(super) fn note(&self, error: impl FnOnce() -> String) {
        let mut errors = self.errors.lock();
        if errors.len() < ERRORS_TOLD_MAX {
            errors.push(error());
        }
    }

    pub(super) fn summary(&self, is_deletion: bool) -> ImportSummary {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ImportSummary {
            imported: load(&self.imported) + load(&self.earlier),
            earlier: load(&self.earlier),
            already_there: load(&self.already_there),
            failed: load(&self.failed),
            skipped: load(&self.skipped),
            errors: self.errors.lock().clone(),
            is_deletion,
        }
    }
}
