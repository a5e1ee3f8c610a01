//! Errors that are retried, and the waits between attempts.

use crate::{Interrupted, ToolError};
use bunko_client::ClientError;
use std::sync::atomic::Ordering;
use std::time::Duration;

const WAIT_MIN: Duration = Duration::from_millis(100);
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Maximum number of attempts in a row without success: with the waits between them, about a minute.
const ATTEMPTS_MAX: u32 = 12;
/// Longest time until an interruption is noticed.
const INTERRUPTION_POLL: Duration = Duration::from_millis(50);

/// Codes of transient errors: the server stops, changes its role, or has lost the cursor.
/// Source: MongoDB specification "Retryable Reads", "Retryable Error"; MongoDB manual, "Error Codes".
const TRANSIENT_CODES: &[i32] = &[
    6,     // HostUnreachable
    7,     // HostNotFound
    43,    // CursorNotFound
    63,    // StaleShardVersion
    89,    // NetworkTimeout
    91,    // ShutdownInProgress
    133,   // FailedToSatisfyReadPreference
    134,   // ReadConcernMajorityNotAvailableYet
    150,   // StaleEpoch
    189,   // PrimarySteppedDown
    237,   // CursorKilled
    262,   // ExceededTimeLimit
    9001,  // SocketException
    10107, // NotWritablePrimary
    11600, // InterruptedAtShutdown
    11602, // InterruptedDueToReplStateChange
    13388, // StaleConfig
    13435, // NotPrimaryNoSecondaryOk
    13436, // NotPrimaryOrSecondary
];

/// Whether another attempt may succeed a little later.
pub fn is_transient(error: &ClientError) -> bool {
    match error {
        ClientError::Disconnected { .. } | ClientError::Unreachable { .. } | ClientError::NoSuitableServer { .. } => {
            true
        }
        ClientError::Command(error) => TRANSIENT_CODES.contains(&error.code),
        _ => false,
    }
}

/// Waits that grow with each failure in a row.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    attempts: u32,
}

impl Backoff {
    /// Resets the wait after a success.
    pub fn reset(&mut self) {
        self.attempts = 0;
    }

    /// Waits before the next attempt.
    /// # Errors
    /// `error` itself if it is not transient, or after the last attempt; `Interrupted`.
    pub fn wait(&mut self, namespace: &str, error: ClientError, interrupted: &Interrupted) -> Result<(), ToolError> {
        if !is_transient(&error) || self.attempts >= ATTEMPTS_MAX {
            return Err(ToolError::server(namespace, error));
        }
        let mut rest = (WAIT_MIN * 2_u32.pow(self.attempts.min(16))).min(WAIT_MAX);
        self.attempts += 1;
        while !rest.is_zero() {
            check(interrupted)?;
            let step = rest.min(INTERRUPTION_POLL);
            std::thread::sleep(step);
            rest -= step;
        }
        check(interrupted)
    }
}

/// # Errors
/// `Interrupted` if the user interrupted the run.
pub(crate) fn check(interrupted: &Interrupted) -> Result<(), ToolError> {
    if interrupted.load(Ordering::Relaxed) { Err(ToolError::Interrupted) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_client::CommandError;

    fn refusal(code: i32) -> ClientError {
        ClientError::Command(CommandError { code, code_name: String::new(), message: "no".into() })
    }

    #[test]
    fn only_transient_errors_are_tried_again() {
        let interrupted = Interrupted::default();
        let mut backoff = Backoff::default();
        assert!(matches!(backoff.wait("a.b", refusal(13), &interrupted), Err(ToolError::Server { .. })));
        assert!(backoff.wait("a.b", refusal(189), &interrupted).is_ok());
        interrupted.store(true, Ordering::Relaxed);
        assert!(matches!(backoff.wait("a.b", refusal(189), &interrupted), Err(ToolError::Interrupted)));
        backoff.attempts = ATTEMPTS_MAX;
        assert!(matches!(backoff.wait("a.b", refusal(189), &interrupted), Err(ToolError::Server { .. })));
        backoff.reset();
        assert_eq!(backoff.attempts, 0);
    }
}
