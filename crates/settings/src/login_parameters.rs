//! Parameters of logins.

use crate::owners::Owners;
use crate::parameter::{Parameter, invalid, whole_number};
use bunko_access::Mechanism;
use bunko_bson::{Value, ValueRef};
use bunko_errors::Result;
use bunko_request::fields::truth;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Fewest iterations of SCRAM, as MongoDB has it.
/// Source: MongoDB manual, parameter `scramIterationCount`.
const ITERATIONS_MIN: i64 = 5_000;
/// Most of them: a login must not take a client longer than some seconds.
const ITERATIONS_MAX: i64 = 10_000_000;
/// Parameter for the delay before a failed login is refused, and its largest value in milliseconds.
/// Source: MongoDB manual, parameter `authFailedDelayMs`.
pub const LOGIN_DELAY: &str = "authFailedDelayMs";
const LOGIN_DELAY_MS_MAX: u64 = 5_000;
/// The mechanisms that logins may use.
pub const MECHANISMS: Parameter = Parameter::set_at_startup(
    "authenticationMechanisms",
    |owners| Ok(Value::Array(owners.mechanisms().into_iter().collect())),
    |owners, value| owners.set_mechanisms(value.as_str().unwrap_or_default()),
);

/// Whether a client on the server's machine may create the first user without a login.
pub const LOCALHOST_BYPASS: Parameter = Parameter::set_at_startup(
    "enableLocalhostAuthBypass",
    |owners| Ok(Value::Boolean(!owners.is_bypass_closed())),
    |owners, value| {
        if !truth(value) {
            owners.close_bypass();
        }
        Ok(())
    },
);

pub fn write_iterations(owners: &dyn Owners, name: &str, mechanism: Mechanism, value: ValueRef<'_>) -> Result<()> {
    let count = whole_number(name, value)?;
    if !(ITERATIONS_MIN..=ITERATIONS_MAX).contains(&count) {
        return Err(invalid(name, value, &format!("is not within {ITERATIONS_MIN} to {ITERATIONS_MAX}")));
    }
    owners.iterations(mechanism).store(count as i32, Ordering::Relaxed);
    Ok(())
}

pub fn write_login_delay(owners: &dyn Owners, value: ValueRef<'_>) -> Result<()> {
    let milliseconds = whole_number(LOGIN_DELAY, value)?;
    let milliseconds = u64::try_from(milliseconds).ok().filter(|delay| *delay <= LOGIN_DELAY_MS_MAX);
    let milliseconds =
        milliseconds.ok_or_else(|| invalid(LOGIN_DELAY, value, &format!("is not within 0 to {LOGIN_DELAY_MS_MAX}")))?;
    owners.set_login_delay(Duration::from_millis(milliseconds));
    Ok(())
}
