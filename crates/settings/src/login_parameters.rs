//! Parameters of logins.

use crate::owners::Owners;
use crate::parameter::{Parameter, invalid, whole_number};
use bunko_access::Mechanism;
use bunko_authority::MECHANISMS as ALL_MECHANISMS;
use bunko_bson::{Value, ValueRef};
use bunko_errors::{Failure, Result};
use bunko_request::fields::truth;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Minimum number of iterations of SCRAM, as in MongoDB.
/// Source: MongoDB manual, parameter `scramIterationCount`.
const ITERATIONS_MIN: i64 = 5_000;
/// Maximum number of iterations: a login must not take a client longer than some seconds.
const ITERATIONS_MAX: i64 = 10_000_000;
/// Parameter for the delay before a failed login is refused, and its largest value in milliseconds.
/// Source: MongoDB manual, parameter `authFailedDelayMs`.
pub const LOGIN_DELAY: &str = "authFailedDelayMs";
const LOGIN_DELAY_MS_MAX: u64 = 5_000;

/// The mechanisms that logins may use.
pub const MECHANISMS: Parameter = Parameter::set_at_startup(
    "authenticationMechanisms",
    |owners| Ok(Value::Array(owners.authority().access.mechanisms().into_iter().collect())),
    |owners, value| {
        let text = value.as_str().unwrap_or_default();
        let known = |name: &str| ALL_MECHANISMS.into_iter().find(|known| *known == name);
        let names: Option<Vec<_>> = text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(known).collect();
        let names = names.filter(|names| !names.is_empty()).ok_or_else(|| {
            let all = ALL_MECHANISMS.join(", ");
            Failure::not_supported_yet(&format!("authenticationMechanisms: '{text}', which is not made of {all},"))
        })?;
        owners.authority().access.set_mechanisms(names);
        Ok(())
    },
);

/// Whether a client on the server's machine may create the first user without a login.
pub const LOCALHOST_BYPASS: Parameter = Parameter::set_at_startup(
    "enableLocalhostAuthBypass",
    |owners| Ok(Value::Boolean(!owners.authority().access.is_bypass_closed())),
    |owners, value| {
        if !truth(value) {
            owners.authority().access.close_bypass();
        }
        Ok(())
    },
);

pub fn write_iterations(owners: &dyn Owners, name: &str, mechanism: Mechanism, value: ValueRef<'_>) -> Result<()> {
    let count = whole_number(name, value)?;
    if !(ITERATIONS_MIN..=ITERATIONS_MAX).contains(&count) {
        return Err(invalid(name, value, &format!("is not within {ITERATIONS_MIN} to {ITERATIONS_MAX}")));
    }
    owners.authority().access.iterations(mechanism).store(count as i32, Ordering::Relaxed);
    Ok(())
}

pub fn write_login_delay(owners: &dyn Owners, value: ValueRef<'_>) -> Result<()> {
    let milliseconds = whole_number(LOGIN_DELAY, value)?;
    let milliseconds = u64::try_from(milliseconds).ok().filter(|delay| *delay <= LOGIN_DELAY_MS_MAX);
    let milliseconds =
        milliseconds.ok_or_else(|| invalid(LOGIN_DELAY, value, &format!("is not within 0 to {LOGIN_DELAY_MS_MAX}")))?;
    owners.authority().access.set_failure_delay(Duration::from_millis(milliseconds));
    Ok(())
}
