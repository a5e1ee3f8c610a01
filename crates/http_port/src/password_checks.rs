//! Checks of passwords, for which clients that guess must wait.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// How long the reply to a wrong password waits.
const REFUSAL_DELAY: Duration = Duration::from_secs(1);
/// Maximum number of passwords that are being checked or were refused within the last [`REFUSAL_DELAY`]. A check takes
/// milliseconds of processor time, so clients that guess passwords must wait, even if they hang up before the reply.
const CHECKS_MAX: usize = 4;

/// The turns of clients whose passwords are checked.
pub struct PasswordChecks(Arc<Semaphore>);

impl Default for PasswordChecks {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(CHECKS_MAX)))
    }
}

impl PasswordChecks {
    /// Runs a check in its turn, and returns its result. `None` means that the password is wrong: that is returned
    /// after a delay.
    pub async fn check<T>(&self, check: impl FnOnce() -> Option<T>) -> Option<T> {
        // The semaphore is never closed.
        let turn = Arc::clone(&self.0).acquire_owned().await.ok()?;
        let outcome = check();
        if outcome.is_none() {
            // A task of its own, because a client that hangs up ends this one.
            tokio::spawn(async move {
                tokio::time::sleep(REFUSAL_DELAY).await;
                drop(turn);
            });
            tokio::time::sleep(REFUSAL_DELAY).await;
        }
        outcome
    }
}
