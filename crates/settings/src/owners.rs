//! The owners of the values that parameters show and set.

use crate::connection_rate::ConnectionPace;
use crate::parameters::Parameters;
use bunko_authority::Authority;
use bunko_catalog::Catalog;

/// Values that are decided when the server starts.
#[derive(Clone, Copy, Debug)]
pub struct AtStart<'a> {
    /// Whether clients may use commands that only tests use.
    pub accepts_test_commands: bool,
    /// Which connections are encrypted: the value of `net.tls.mode`.
    pub tls_mode: &'a str,
    /// The URL to which spans are sent; empty if none are.
    pub trace_endpoint: &'a str,
    /// Minutes after which an unused session ends.
    pub session_timeout_minutes: i32,
    /// Maximum number of sessions at once.
    pub sessions_max: usize,
}

/// The parts of a server that hold the values of parameters.
pub trait Owners {
    /// Holds the values that no other part holds.
    fn parameters(&self) -> &Parameters;
    /// Holds limits of memory and of index builds, and how long past states are kept.
    fn catalog(&self) -> &Catalog;
    /// Holds the parameters of logins and of the audit log.
    fn authority(&self) -> &Authority;
    /// Holds the limit on the rate of new connections.
    fn pace(&self) -> &ConnectionPace;
    /// Values that are fixed since the start.
    fn at_start(&self) -> AtStart<'_>;

    /// Removes statistics of queries that are beyond their limit.
    fn limit_query_statistics(&self);

    /// Whether log lines leave out values from clients.
    fn is_log_redacted(&self) -> bool;
    /// Sets [`Self::is_log_redacted`].
    fn set_log_redacted(&self, is_redacted: bool);
}
