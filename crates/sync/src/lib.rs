//! Locks, condition variables, atomics and threads for code that has a model.
//!
//! They are those of `parking_lot` and the standard library. With the feature `models`, a scheduler replaces them,
//! which runs a model again and again with different orders of its threads; see `tests/models/run`.

#[cfg(not(feature = "models"))]
pub use parking_lot::{Condvar, Mutex, MutexGuard};
#[cfg(not(feature = "models"))]
pub use std::{hint, sync::atomic, thread};

#[cfg(feature = "models")]
mod scheduled;
#[cfg(feature = "models")]
pub use scheduled::{Condvar, Mutex, MutexGuard, explore};
#[cfg(feature = "models")]
pub use shuttle::{future::block_on, hint, sync::atomic, thread};
