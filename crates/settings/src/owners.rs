//! The owners of the values that parameters show and set.

use crate::connection_rate::ConnectionPace;
use crate::parameters::Parameters;
use bunko_access::Mechanism;
use bunko_catalog::Catalog;
use bunko_errors::Result;
use std::sync::atomic::AtomicI32;
use std::time::Duration;

/// Values that are decided when the server starts.
#[derive(Clone, Copy, Debug)]
pub struct AtStart<'a> {
    /// Whether clients may use commands that only tests use.
    pub accepts_test_commands: bool,
    /// Which connections are encrypted: the value of `net.tls.mode`.
    pub tls_mode: &'a str,
    /// Minutes after which an unused session ends.
    pub session_timeout_minutes: i32,
    /// Most sessions at once.
    pub sessions_max: usize,
}

/// The parts of a server that hold the values of parameters.
pub trait Owners {
    /// Holds the values that no other part holds.
    fn parameters(&self) -> &Parameters;
    /// Holds limits of memory and of index builds, and how long past states are kept.
    fn catalog(&self) -> &Catalog;
    /// Holds the limit on the rate of new connections.
    fn pace(&self) -> &ConnectionPace;
    /// Values that are fixed since the start.
    fn at_start(&self) -> AtStart<'_>;

    /// How often a mechanism hashes a password that is set from now on.
    fn iterations(&self, mechanism: Mechanism) -> &AtomicI32;
    /// Delay of the reply to a refused login.
    fn login_delay(&self) -> Duration;
    /// Sets [`Self::login_delay`].
    fn set_login_delay(&self, delay: Duration);
    /// The mechanisms that logins may use.
    fn mechanisms(&self) -> Vec<&'static str>;
    /// Restricts logins to the mechanisms that a text names, separated by commas.
    /// # Errors
    /// `CommandNotSupported` if a mechanism is unknown, or if there is none.
    fn set_mechanisms(&self, names: &str) -> Result<()>;
    /// Whether the localhost exception is off, so that no client can create the first user without a login.
    fn is_bypass_closed(&self) -> bool;
    /// Turns the localhost exception off.
    fn close_bypass(&self);

    /// Whether successful privilege checks are events of the audit log.
    fn audits_successes(&self) -> bool;
    /// Sets [`Self::audits_successes`].
    /// # Errors
    /// If the choice of events is a cluster parameter.
    fn set_audits_successes(&self, are_events: bool) -> Result<()>;
    /// Whether log lines leave out values from clients.
    fn is_log_redacted(&self) -> bool;
    /// Sets [`Self::is_log_redacted`].
    fn set_log_redacted(&self, is_redacted: bool);
}
