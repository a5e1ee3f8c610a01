//! The first failure of a constant.

use bunko_errors::{Failure, Result};
use std::sync::OnceLock;

/// The first failure of a constant that was evaluated while it was parsed.
#[derive(Debug, Default)]
pub struct ConstantFailure(OnceLock<Failure>);

impl ConstantFailure {
    /// # Errors
    /// If a failure was noted: that failure, with `what` in front of its message.
    pub fn check(&self, what: &str) -> Result<()> {
        match self.0.get() {
            Some(failure) => Err(failure.clone().with_prefix(&format!("{what} :: caused by :: "))),
            None => Ok(()),
        }
    }

    /// Notes a failure of a constant.
    pub(crate) fn note(&self, failure: Failure) {
        // Only the first failure is reported; MongoDB stops there.
        let _ = self.0.set(failure);
    }
}
