//! Panics of threads that nobody waits for, as errors.

use crate::{Result, StorageError};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs what may panic.
///
/// # Errors
/// [`StorageError::Panicked`] where it does. What it was changing may be half changed: the log has to fail, so that
/// nothing is acknowledged any more.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| StorageError::Panicked { message: message(&*panic) })
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a message".to_owned())
}
