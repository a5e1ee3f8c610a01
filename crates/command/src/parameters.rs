//! What `getParameter` and `setParameter` see. Only parameters that are true here stand in the table.

use crate::cursor_store::CURSOR_TIMEOUT;
use bunko_bson::text::ValueText;
use bunko_bson::{ArrayBuf, DocumentBuf, MAX_DEPTH_ACCEPTED, Value, ValueRef, number};
use bunko_errors::{Failure, Result};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Minutes that a session lives without use.
/// Source: MongoDB manual, parameter `localLogicalSessionTimeoutMinutes`.
pub(crate) const SESSION_TIMEOUT_MINUTES: i32 = 30;

/// The server's parameters.
#[derive(Debug)]
// Units stand last in all names.
#[allow(clippy::struct_field_names)]
pub struct Parameters {
    cursor_timeout_ms: AtomicI64,
    slow_operation_ms: AtomicI64,
    journal_commit_interval_ms: i32,
}

impl Parameters {
    /// The defaults, with what was decided when the server started.
    pub fn new(journal_commit_interval: Duration, slow_operation: Duration) -> Self {
        Self {
            cursor_timeout_ms: AtomicI64::new(CURSOR_TIMEOUT.as_millis() as i64),
            slow_operation_ms: AtomicI64::new(slow_operation.as_millis() as i64),
            journal_commit_interval_ms: journal_commit_interval.as_millis() as i32,
        }
    }

    /// An operation that takes that long is logged.
    pub fn slow_operation(&self) -> Duration {
        Duration::from_millis(self.slow_operation_ms.load(Ordering::Relaxed).unsigned_abs())
    }

    /// From now on those that take that long are logged.
    pub(crate) fn set_slow_operation_ms(&self, milliseconds: u32) {
        self.slow_operation_ms.store(milliseconds.into(), Ordering::Relaxed);
    }

    /// How long a cursor may wait for its `getMore`.
    pub fn cursor_timeout(&self) -> Duration {
        Duration::from_millis(self.cursor_timeout_ms.load(Ordering::Relaxed).unsigned_abs())
    }
}

/// One parameter.
pub(crate) struct Parameter {
    pub name: &'static str,
    pub read: fn(&Parameters) -> Value,
    /// Says whether it can be set now, and does.
    pub write: Option<fn(&Parameters, ValueRef<'_>) -> Result<()>>,
}

/// All parameters, by name.
pub(crate) const PARAMETERS: &[Parameter] = &[
    Parameter { name: "authenticationMechanisms", read: |_| Value::Array(ArrayBuf::new()), write: None },
    Parameter {
        name: "cursorTimeoutMillis",
        read: |parameters| Value::Int64(parameters.cursor_timeout_ms.load(Ordering::Relaxed)),
        write: Some(write_cursor_timeout),
    },
    Parameter { name: "diagnosticDataCollectionEnabled", read: |_| Value::Boolean(false), write: None },
    Parameter { name: "enableTestCommands", read: |_| Value::Boolean(false), write: None },
    Parameter {
        name: "featureCompatibilityVersion",
        read: |_| Value::Document(DocumentBuf::new().with("version", "8.0")),
        write: None,
    },
    Parameter {
        name: "journalCommitInterval",
        read: |parameters| Value::Int32(parameters.journal_commit_interval_ms),
        write: None,
    },
    Parameter {
        name: "localLogicalSessionTimeoutMinutes",
        read: |_| Value::Int32(SESSION_TIMEOUT_MINUTES),
        write: None,
    },
    Parameter { name: "logLevel", read: |_| Value::Int32(0), write: None },
    Parameter { name: "maxBSONDepth", read: |_| Value::Int32(MAX_DEPTH_ACCEPTED as i32), write: None },
    Parameter { name: "notablescan", read: |_| Value::Boolean(false), write: None },
    Parameter { name: "quiet", read: |_| Value::Boolean(false), write: None },
    Parameter { name: "requireApiVersion", read: |_| Value::Boolean(false), write: None },
    Parameter { name: "tlsMode", read: |_| Value::from(ValueRef::String("disabled")), write: None },
    Parameter { name: "traceExceptions", read: |_| Value::Boolean(false), write: None },
];

fn whole_number(name: &str, value: ValueRef<'_>) -> Result<i64> {
    number::as_i64_exact(value).ok_or_else(|| {
        Failure::bad_value(format!("Invalid value for parameter {name}: {} is not a whole number", ValueText(value)))
    })
}

fn write_cursor_timeout(parameters: &Parameters, value: ValueRef<'_>) -> Result<()> {
    let milliseconds = whole_number("cursorTimeoutMillis", value)?;
    if milliseconds <= 0 {
        return Err(Failure::bad_value(format!(
            "Invalid value for parameter cursorTimeoutMillis: {milliseconds} is not greater than 0"
        )));
    }
    parameters.cursor_timeout_ms.store(milliseconds, Ordering::Relaxed);
    Ok(())
}

/// A parameter that is what it is.
pub(crate) fn not_settable(name: &str) -> Failure {
    Failure::new(bunko_errors::ErrorCode::ILLEGAL_OPERATION, format!("not allowed to change [{name}] at runtime"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_sorted_and_unique() {
        assert!(PARAMETERS.is_sorted_by(|a, b| a.name < b.name));
    }
}
