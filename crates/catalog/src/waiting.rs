//! Waits for locks, within the limits of the operation.

use bunko_errors::Result;
use bunko_operation::OperationSource;
use bunko_store::{LockTable, Locked, StripeNumbers};
use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

/// Locks a mutex; checks the operation from time to time while another thread holds it.
/// # Errors
/// As `OperationContext::check`, which includes `Interrupted` if the operation is killed.
pub(crate) fn lock<'l, T>(mutex: &'l Mutex<T>, operation: &dyn OperationSource) -> Result<MutexGuard<'l, T>> {
    wait(mutex.try_lock(), operation, |until| mutex.try_lock_until(until))
}

/// Locks for reading, as [`lock`].
/// # Errors
/// As [`lock`].
pub(crate) fn share<'l, T>(lock: &'l RwLock<T>, operation: &dyn OperationSource) -> Result<RwLockReadGuard<'l, T>> {
    wait(lock.try_read(), operation, |until| lock.try_read_until(until))
}

/// Locks for writing, as [`lock`].
/// # Errors
/// As [`lock`].
pub(crate) fn exclude<'l, T>(lock: &'l RwLock<T>, operation: &dyn OperationSource) -> Result<RwLockWriteGuard<'l, T>> {
    wait(lock.try_write(), operation, |until| lock.try_write_until(until))
}

/// Locks stripes of the lock table, as [`lock`].
/// # Errors
/// As [`lock`].
pub(crate) fn lock_stripes<'l>(
    table: &'l LockTable,
    stripes: &mut StripeNumbers,
    operation: &dyn OperationSource,
) -> Result<Locked<'l>> {
    table.lock_all(stripes, || operation.operation().may_wait_until())
}

fn wait<G>(tried: Option<G>, operation: &dyn OperationSource, try_until: impl Fn(Instant) -> Option<G>) -> Result<G> {
    let mut guard = tried;
    loop {
        match guard {
            Some(guard) => return Ok(guard),
            None => guard = try_until(operation.operation().may_wait_until()?),
        }
    }
}
