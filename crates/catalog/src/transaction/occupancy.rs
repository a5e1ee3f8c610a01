//! Transactions that use a collection, and changes of the collection that wait for them.
//!
//! A transaction that has read or written a collection relies on the collection's indexes and options until it ends. A
//! change of the collection announces itself, waits for the transactions that are in the collection, and keeps new ones
//! out. A new transaction waits for a few milliseconds and then fails, because a waiting transaction has claims that
//! other writers wait for.

use crate::waiting::exclude;
use crate::{Collection, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationSource;
use bunko_store::Lsn;
use parking_lot::{Condvar, Mutex, RwLockWriteGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Longest wait of a transaction for a change of a collection if the limit is off; no change takes as long.
const WAIT_MAX: Duration = Duration::from_hours(24);

/// Transactions and changes of one collection.
#[derive(Default)]
pub(crate) struct Occupancy {
    present: Mutex<Present>,
    changed: Condvar,
    /// The LSN of the collection's last change.
    changed_at: AtomicU64,
}

#[derive(Default)]
struct Present {
    transactions: usize,
    /// Changes that are waiting or going on.
    changes: usize,
}

/// A change that is waiting or going on.
pub(crate) struct Announced<'o>(&'o Occupancy);

/// A transaction's stay in a collection.
pub(crate) struct Stay(Arc<Occupancy>);

/// Keeps writers and transactions out of a collection.
pub(crate) struct Excluded<'c> {
    _structure: RwLockWriteGuard<'c, ()>,
    _announced: Announced<'c>,
}

impl Occupancy {
    fn announce(&self) -> Announced<'_> {
        self.present.lock().changes += 1;
        Announced(self)
    }

    /// Whether no transaction is in the collection.
    pub fn is_free(&self) -> bool {
        self.present.lock().transactions == 0
    }

    fn wait_until_free(&self, operation: &dyn OperationSource) -> Result<()> {
        let mut present = self.present.lock();
        while present.transactions > 0 {
            let until = operation.operation().may_wait_until()?;
            self.changed.wait_until(&mut present, until);
        }
        Ok(())
    }

    /// Waits for changes to end. Returns whether none is left.
    fn wait_for_changes(&self, until: Instant) -> bool {
        let mut present = self.present.lock();
        while present.changes > 0 {
            if self.changed.wait_until(&mut present, until).timed_out() {
                return present.changes == 0;
            }
        }
        true
    }

    /// Notes the LSN of a change. The caller keeps transactions out, or the collection is still private.
    pub fn note_change(&self, lsn: Lsn) {
        self.changed_at.fetch_max(lsn.0, Ordering::AcqRel);
    }

    /// The LSN of the collection's last change.
    pub fn changed_at(&self) -> Lsn {
        Lsn(self.changed_at.load(Ordering::Acquire))
    }

    /// Whether a snapshot of everything below `before` shows the collection in its present form.
    pub fn is_as_of(&self, before: Lsn) -> bool {
        self.changed_at() < before
    }
}

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        self.0.present.lock().changes -= 1;
        self.0.changed.notify_all();
    }
}

impl Stay {
    /// Lets a transaction into a collection.
    /// # Errors
    /// `LockTimeout` if changes of the collection take more than `ms_max` milliseconds; a negative `ms_max` means no
    /// limit.
    pub fn begin(collection: &Collection, ms_max: i32) -> Result<Self> {
        let until = collection.store.clock().now() + u64::try_from(ms_max).map_or(WAIT_MAX, Duration::from_millis);
        let timeout = || {
            let message =
                format!("Unable to acquire lock on collection '{}' within {ms_max}ms.", collection.namespace());
            Failure::new(ErrorCode::LOCK_TIMEOUT, message)
        };
        let occupancy = &collection.occupancy;
        if !occupancy.wait_for_changes(until) {
            return Err(timeout());
        }
        let _structure = collection.structure.try_read_until(until).ok_or_else(timeout)?;
        let mut present = occupancy.present.lock();
        if present.changes > 0 {
            return Err(timeout());
        }
        present.transactions += 1;
        Ok(Self(Arc::clone(occupancy)))
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        self.0.present.lock().transactions -= 1;
        self.0.changed.notify_all();
    }
}

/// Announces a change of a collection and waits for the transactions in it. A change of the catalog calls this before
/// it locks the catalog: transactions can take a minute.
/// # Errors
/// As `OperationContext::check`, which includes `Interrupted` if the operation is killed.
pub(crate) fn announce<'c>(collection: &'c Collection, operation: &dyn OperationSource) -> Result<Announced<'c>> {
    let announced = collection.occupancy.announce();
    collection.occupancy.wait_until_free(operation)?;
    Ok(announced)
}

/// Keeps writers and transactions out of a collection, after the transactions in it have ended.
/// # Errors
/// As [`announce`].
pub(crate) fn exclude_all<'c>(collection: &'c Collection, operation: &dyn OperationSource) -> Result<Excluded<'c>> {
    let announced = collection.occupancy.announce();
    loop {
        // Transactions enter while they share the structure, so none enters from here on.
        let structure = exclude(&collection.structure, operation)?;
        if collection.occupancy.is_free() {
            return Ok(Excluded { _structure: structure, _announced: announced });
        }
        drop(structure);
        collection.occupancy.wait_until_free(operation)?;
    }
}

/// The failure of a transaction whose snapshot is older than the collection's last change.
pub(crate) fn changed_since(namespace: &Namespace) -> Failure {
    let message = format!(
        "Unable to read from a snapshot due to pending collection catalog changes to collection '{namespace}'; please retry \
         the operation."
    );
    Failure::new(ErrorCode::SNAPSHOT_UNAVAILABLE, message)
}
