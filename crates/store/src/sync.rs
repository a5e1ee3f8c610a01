//! The locks, conditions, atomics and threads of what has a model.
//!
//! They are those of `parking_lot` and the standard library. With the feature `models` a scheduler takes their place,
//! which runs a model again and again, each time with the threads in another order; see `tests/models/run`.

#[cfg(not(feature = "models"))]
pub use parking_lot::{Condvar, Mutex, MutexGuard};
#[cfg(not(feature = "models"))]
pub use std::{hint, sync::atomic, thread};

#[cfg(feature = "models")]
mod scheduled;
#[cfg(feature = "models")]
pub use scheduled::{Condvar, Mutex, MutexGuard, explore};
#[cfg(feature = "models")]
pub use shuttle::{hint, sync::atomic, thread};
