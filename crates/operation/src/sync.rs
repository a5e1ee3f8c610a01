//! The lock and the atomics of [`crate::ServerMemory`]. With the feature `models`, a scheduler that tries the orders of
//! threads provides them; see `tests/models/run`.

#[cfg(not(feature = "models"))]
pub use parking_lot::Mutex;
#[cfg(not(feature = "models"))]
pub use std::sync::atomic;

#[cfg(feature = "models")]
pub use scheduled::Mutex;
#[cfg(feature = "models")]
pub use shuttle::sync::atomic;

#[cfg(feature = "models")]
mod scheduled {
    /// The scheduler's lock in the form of `parking_lot`'s: a panic ends the model.
    #[derive(Debug, Default)]
    pub struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub fn lock(&self) -> shuttle::sync::MutexGuard<'_, T> {
            self.0.lock().expect("no panic")
        }
    }
}
