//! What `getParameter` and `setParameter` see. Only parameters that are true here stand in the table.

use crate::cursor_store::CURSOR_TIMEOUT;
use bunko_bson::text::ValueText;
use bunko_bson::{ArrayBuf, DocumentBuf, MAX_DEPTH_ACCEPTED, Value, ValueRef, number};
use bunko_errors::{Failure, Result};
use parking_lot::Mutex;
use std::fmt;
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};
use std::time::Duration;

/// Minutes that a session lives without use.
/// Source: MongoDB manual, parameter `localLogicalSessionTimeoutMinutes`.
pub(crate) const SESSION_TIMEOUT_MINUTES: i32 = 30;
/// Most detailed log.
/// Source: MongoDB manual, "Log Messages", verbosity levels.
const LOG_LEVEL_MAX: i64 = 5;

/// Called with the new level.
type LogLevelFollower = Box<dyn Fn(i32) + Send + Sync>;

/// The server's parameters.
pub struct Parameters {
    cursor_timeout_ms: AtomicI64,
    log_level: AtomicI32,
    log_level_follower: Mutex<Option<LogLevelFollower>>,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            cursor_timeout_ms: AtomicI64::new(CURSOR_TIMEOUT.as_millis() as i64),
            log_level: AtomicI32::new(0),
            log_level_follower: Mutex::new(None),
        }
    }
}

impl fmt::Debug for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parameters")
            .field("cursor_timeout_ms", &self.cursor_timeout_ms)
            .field("log_level", &self.log_level)
            .finish_non_exhaustive()
    }
}

impl Parameters {
    /// How long a cursor may wait for its `getMore`.
    pub fn cursor_timeout(&self) -> Duration {
        Duration::from_millis(self.cursor_timeout_ms.load(Ordering::Relaxed).unsigned_abs())
    }

    /// Makes `logLevel` settable: whoever writes the log says how its level is changed. The level in force now is
    /// `level`, 0 (informational) to 5.
    pub fn follow_log_level(&self, level: i32, follower: LogLevelFollower) {
        self.log_level.store(level, Ordering::Relaxed);
        *self.log_level_follower.lock() = Some(follower);
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
        name: "localLogicalSessionTimeoutMinutes",
        read: |_| Value::Int32(SESSION_TIMEOUT_MINUTES),
        write: None,
    },
    Parameter {
        name: "logLevel",
        read: |parameters| Value::Int32(parameters.log_level.load(Ordering::Relaxed)),
        write: Some(write_log_level),
    },
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

fn write_log_level(parameters: &Parameters, value: ValueRef<'_>) -> Result<()> {
    let level = whole_number("logLevel", value)?;
    if !(0..=LOG_LEVEL_MAX).contains(&level) {
        return Err(Failure::bad_value(format!(
            "Invalid value for parameter logLevel: {level} is not between 0 and {LOG_LEVEL_MAX}"
        )));
    }
    let follower = parameters.log_level_follower.lock();
    let follower = follower.as_ref().ok_or_else(|| not_settable("logLevel"))?;
    follower(level as i32);
    parameters.log_level.store(level as i32, Ordering::Relaxed);
    Ok(())
}

/// A parameter that is what it is.
pub(crate) fn not_settable(name: &str) -> Failure {
    Failure::new(bunko_errors::ErrorCode::ILLEGAL_OPERATION, format!("not allowed to change [{name}] at runtime"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn parameters_are_sorted_and_unique() {
        assert!(PARAMETERS.is_sorted_by(|a, b| a.name < b.name));
    }

    #[test]
    fn the_log_follows_its_level() {
        let parameters = Parameters::default();
        assert!(write_log_level(&parameters, ValueRef::Int32(1)).is_err(), "nobody follows");
        let heard = Arc::new(AtomicI32::new(-1));
        let ear = Arc::clone(&heard);
        parameters.follow_log_level(0, Box::new(move |level| ear.store(level, Ordering::Relaxed)));
        write_log_level(&parameters, ValueRef::Double(2.0)).expect("a level");
        assert_eq!(heard.load(Ordering::Relaxed), 2);
        assert!(write_log_level(&parameters, ValueRef::Int32(6)).is_err());
    }
}
