//! One namespace on its way from the dump to the server.

use super::ledger::Ledger;
use super::resume::Earlier;
use super::summary::{NamespaceSummary, State};
use crate::progress::Counts;
use crate::verify::DocumentSum;
use bunko_archive::metadata::Metadata;
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The collection behind a time series.
pub(super) const BUCKETS_PREFIX: &str = "system.buckets.";
/// Errors that are told one by one; the rest is counted.
const ERRORS_TOLD_MAX: usize = 5;

/// What a namespace is to a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Documents.
    Collection,
    /// A definition, made once everything that it may show is there.
    View,
    /// Documents that are buckets of a time series.
    TimeSeries,
    /// Documents that the server merges into its users.
    Users,
    /// Documents that the server merges into its roles.
    Roles,
}

impl Role {
    /// Whether the server is to have the documents only until it has merged them.
    pub(super) fn is_temporary(self) -> bool {
        matches!(self, Self::Users | Self::Roles)
    }
}

/// Whether batches of a target may be on their way at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Another one may be sent.
    Free,
    /// One is on its way, and its successor has to wait.
    Occupied,
}

/// One namespace.
pub(super) struct Target {
    /// What the dump calls it.
    pub(super) source: String,
    /// The database that it goes to.
    pub(super) database: String,
    /// The collection that it becomes.
    pub(super) collection: String,
    /// Both.
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) metadata: Metadata,
    /// What the dump says of its size; 0 where it does not.
    pub(super) size_bytes: u64,
    pub(super) counts: Arc<Counts>,
    /// How far an earlier run came with it.
    pub(super) earlier: Earlier,
    /// Whether its documents keep their order.
    is_serial: bool,
    is_occupied: AtomicBool,
    /// The server's bulk path does not take its documents.
    pub(super) refuses_bulk: AtomicBool,
    has_failed: AtomicBool,
    ledger: Mutex<Ledger>,
    outcome: Mutex<Outcome>,
    /// What the dump holds, to be compared with what the server has afterwards.
    pub(super) sum: Mutex<DocumentSum>,
}

#[derive(Default)]
struct Outcome {
    state: State,
    indexes_built: u64,
    indexes_refused: Vec<String>,
    errors: Vec<String>,
}

/// What a target is made of.
pub(super) struct Found {
    pub(super) source: String,
    /// Where it goes: `database.collection`.
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) metadata: Metadata,
    pub(super) size_bytes: u64,
}

impl Target {
    /// `is_serial`: whether the order of documents matters, as in capped collections.
    pub(super) fn new(found: Found, order: super::InsertionOrder, counts: Arc<Counts>, earlier: Earlier) -> Self {
        let (database, collection) = found.name.split_once('.').unwrap_or((&found.name, ""));
        let is_capped = matches!(found.metadata.options.as_ref().get("capped"), Some(value) if is_true(value));
        // An earlier attempt may have counted.
        for count in [&counts.documents, &counts.bytes, &counts.failures] {
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

    /// Documents of this target are not wanted any more.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Nothing more of this target is restored, for this reason.
    pub(super) fn fail(&self, reason: String) {
        self.has_failed.store(true, Ordering::Relaxed);
        let mut outcome = self.outcome.lock();
        outcome.state = State::Failed;
        outcome.errors.insert(0, reason);
        self.counts.finish();
    }

    /// Notes an error that leaves the rest of the target as it is; the first few are told.
    pub(super) fn note_error(&self, error: impl FnOnce() -> String) {
        let mut outcome = self.outcome.lock();
        if outcome.errors.len() < ERRORS_TOLD_MAX {
            outcome.errors.push(error());
        }
    }

    pub(super) fn note_indexes_built(&self, count: u64) {
        self.outcome.lock().indexes_built += count;
    }

    /// Notes an index that the server does not take, by its name and why.
    pub(super) fn note_index_refused(&self, refusal: String) {
        self.outcome.lock().indexes_refused.push(refusal);
    }

    /// Everything of this target that could be restored is.
    pub(super) fn finish(&self) {
        let mut outcome = self.outcome.lock();
        if outcome.state != State::Failed {
            outcome.state = State::Restored;
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
