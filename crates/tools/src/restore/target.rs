//! One namespace on its way from the dump to the server.

use super::earlier::Earlier;
use super::ledger::Ledger;
use super::summary::{NamespaceOutcome, NamespaceSummary};
use crate::progress::Counts;
use crate::verify::DocumentSum;
use bunko_archive::metadata::Metadata;
use bunko_client::CommandError;
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Prefix of the collection behind a time series.
pub(super) const BUCKETS_PREFIX: &str = "system.buckets.";
/// Beginning of the text of an error of a write concern.
pub(crate) const CONCERN_ERROR: &str = "write concern: ";
/// Maximum number of errors that are reported one by one; the others are counted.
const ERRORS_TOLD_MAX: usize = 5;

/// Role of a namespace in a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A collection of documents.
    Collection,
    /// A definition, made once the collections that it may show exist.
    View,
    /// Documents that are buckets of a time series.
    TimeSeries,
    /// Documents that the server merges into its users.
    Users,
    /// Documents that the server merges into its roles.
    Roles,
}

impl Role {
    /// Whether the documents go to a temporary collection, from which the server merges them.
    pub(super) fn is_temporary(self) -> bool {
        matches!(self, Self::Users | Self::Roles)
    }
}

/// Whether another batch of a target may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Another batch may be sent.
    Free,
    /// A batch is in flight, and the next one has to wait.
    Occupied,
}

/// One namespace that is restored.
pub(super) struct RestoredNamespace {
    /// Name in the dump.
    pub(super) source: String,
    /// The database on the server.
    pub(super) database: String,
    /// The collection on the server.
    pub(super) collection: String,
    /// `database.collection` on the server.
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) metadata: Metadata,
    /// Size according to the dump; 0 if it gives none.
    pub(super) size_bytes: u64,
    pub(super) counts: Arc<Counts>,
    /// Progress of earlier runs.
    pub(super) earlier: Earlier,
    /// Whether the order of the documents is kept.
    is_serial: bool,
    is_occupied: AtomicBool,
    /// Set once the server's bulk path has refused the namespace's documents.
    pub(super) refuses_bulk: AtomicBool,
    has_failed: AtomicBool,
    ledger: Mutex<Ledger>,
    outcome: Mutex<Outcome>,
    /// Checksum of the dump's documents, to be compared with the server's.
    pub(super) sum: Mutex<DocumentSum>,
}

#[derive(Default)]
struct Outcome {
    state: NamespaceOutcome,
    indexes_built: u64,
    indexes_refused: Vec<String>,
    errors: Vec<String>,
}

/// Description of a target.
pub(super) struct TargetDescription {
    pub(super) source: String,
    /// Name on the server: `database.collection`.
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) metadata: Metadata,
    pub(super) size_bytes: u64,
}

impl RestoredNamespace {
    /// Makes a target. It is serial if the order of documents matters, as in capped collections.
    pub(super) fn new(
        found: TargetDescription,
        order: super::InsertionOrder,
        counts: Arc<Counts>,
        earlier: Earlier,
    ) -> Self {
        let (database, collection) = found.name.split_once('.').unwrap_or((&found.name, ""));
        let is_capped = matches!(found.metadata.options.as_ref().get("capped"), Some(value) if is_true(value));
        // Resets the counts of an earlier attempt.
        for count in [&counts.documents, &counts.bytes, &counts.failures, &counts.key_failures] {
            count.store(0, Ordering::Relaxed);
        }
        counts.bytes_expected.store(found.size_bytes, Ordering::Relaxed);
        Self {
            database: database.to_owned(),
            collection: collection.to_owned(),
            is_serial: is_capped || order == super::InsertionOrder::Maintain,
            is_occupied: AtomicBool::new(false),
            refuses_bulk: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
            ledger: Mutex::new(Ledger::resumed_at(earlier.done_bytes)),
            outcome: Mutex::default(),
            sum: Mutex::default(),
            source: found.source,
            name: found.name,
            role: found.role,
            metadata: found.metadata,
            size_bytes: found.size_bytes,
            counts,
            earlier,
        }
    }

    /// The collection that documents are inserted into.
    pub(super) fn data_collection(&self) -> String {
        match self.role {
            Role::TimeSeries => format!("{BUCKETS_PREFIX}{}", self.collection),
            _ => self.collection.clone(),
        }
    }

    /// Takes the target's lane for a batch, if it is free.
    pub(super) fn occupy(&self) -> Lane {
        if self.is_serial && self.is_occupied.swap(true, Ordering::AcqRel) { Lane::Occupied } else { Lane::Free }
    }

    /// Gives the lane back.
    pub(super) fn vacate(&self) {
        self.is_occupied.store(false, Ordering::Release);
    }

    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock()
    }

    /// Whether the target was abandoned.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Abandons the target for this reason.
    pub(super) fn fail(&self, reason: String) {
        self.has_failed.store(true, Ordering::Relaxed);
        let mut outcome = self.outcome.lock();
        outcome.state = NamespaceOutcome::Failed;
        outcome.errors.insert(0, reason);
        self.counts.abandon();
    }

    /// Notes an error that does not end the target; only the first few are kept.
    pub(super) fn note_error(&self, error: impl FnOnce() -> String) {
        let mut outcome = self.outcome.lock();
        if outcome.errors.len() < ERRORS_TOLD_MAX {
            outcome.errors.push(error());
        }
    }

    /// Notes an error of a write concern, which is kept whatever errors came before.
    pub(super) fn note_concern_error(&self, error: &CommandError) {
        let mut outcome = self.outcome.lock();
        outcome.errors.truncate(ERRORS_TOLD_MAX - 1);
        outcome.errors.push(format!("{CONCERN_ERROR}{error}"));
    }

    pub(super) fn note_indexes_built(&self, count: u64) {
        self.outcome.lock().indexes_built += count;
    }

    /// Notes an index that the server refused: its name and the reason.
    pub(super) fn note_index_refused(&self, refusal: String) {
        self.outcome.lock().indexes_refused.push(refusal);
    }

    /// Marks the target as restored, unless it failed.
    pub(super) fn finish(&self) {
        let mut outcome = self.outcome.lock();
        if outcome.state != NamespaceOutcome::Failed {
            outcome.state = NamespaceOutcome::Restored;
        }
        self.counts.finish();
    }

    pub(super) fn summary(&self) -> NamespaceSummary {
        let outcome = self.outcome.lock();
        NamespaceSummary {
            source: self.source.clone(),
            target: self.name.clone(),
            kind: match self.role {
                Role::Collection => "collection",
                Role::View => "view",
                Role::TimeSeries => "timeseries",
                Role::Users => "users",
                Role::Roles => "roles",
            },
            size_bytes: self.size_bytes,
            state: outcome.state,
            documents: self.counts.documents.load(Ordering::Relaxed),
            bytes: self.counts.bytes.load(Ordering::Relaxed),
            failures: self.counts.failures.load(Ordering::Relaxed),
            key_failures: self.counts.key_failures.load(Ordering::Relaxed),
            indexes_built: outcome.indexes_built,
            indexes_refused: outcome.indexes_refused.clone(),
            errors: outcome.errors.clone(),
        }
    }
}

fn is_true(value: bunko_bson::ValueRef<'_>) -> bool {
    match value {
        bunko_bson::ValueRef::Boolean(boolean) => boolean,
        number => bunko_bson::number::as_f64(number).is_some_and(|number| number != 0.0),
    }
}
