//! Turns panics of background threads into errors.

use crate::{Result, StorageError};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `work`, which may panic.
///
/// # Errors
/// [`StorageError::Panicked`] if it panics. The state that it was changing may be half changed, so the caller must make
/// the log fail: no write may be acknowledged any more.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| StorageError::Panicked { message: message(&*panic) })
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a message".to_owned())
}
